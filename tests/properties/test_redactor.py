"""A secret never leaks, however it is cut; text without secrets passes unchanged."""

import base64
import json
from itertools import pairwise
from urllib.parse import quote, quote_plus

from hypothesis import assume, given
from hypothesis import strategies as st

from bash_exec.secrets import DELTA_REVEAL, BytesRedactor, Redactor, SecretRegistry

# few characters, so that secrets overlap, contain and continue each other
SECRETS = st.lists(st.text("ab1-/é ", min_size=8, max_size=14).map(lambda text: f"{text.strip()}=x"), max_size=3)
ALPHABET = "ab1-/é ="
ENCODERS = (
    lambda value: value,
    lambda value: value.encode().hex(),
    lambda value: value.encode().hex().upper(),
    lambda value: base64.b64encode(value.encode()).decode(),
    lambda value: base64.b64encode(b"x" + value.encode()).decode(),
    lambda value: base64.urlsafe_b64encode(b"xy" + value.encode() + b"z").decode(),
    lambda value: quote(value, safe=""),
    quote_plus,
    json.dumps,
)


def registry(values):
    secrets = SecretRegistry()
    for number, value in enumerate(values):
        secrets.add(f"S{number}", value, configured=True)
    return secrets


def cut(data, places):
    """`data` in pieces, cut at `places`."""
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


@st.composite
def texts(draw):
    """Secrets, and a text that holds some of them whole and some in part."""
    values = draw(SECRETS)
    pieces = [st.text(ALPHABET, max_size=6)]
    for value in values:
        whole = st.sampled_from(ENCODERS).map(lambda encode, value=value: encode(value))
        pieces += [whole, whole.flatmap(lambda form: st.integers(0, len(form)).map(lambda end: form[:end]))]
    return values, "".join(draw(st.lists(st.one_of(pieces), max_size=8)))


PLACES = st.lists(st.integers(0, 400), max_size=12)


@given(texts(), PLACES)
def test_a_stream_reads_like_the_whole_text_redacted_at_once(case, places):
    values, text = case
    secrets = registry(values)
    redactor = Redactor(secrets)
    assert "".join([*map(redactor.feed, cut(text, places)), redactor.finish()]) == secrets.redact(text)


@given(texts(), PLACES)
def test_bytes_read_like_the_text(case, places):
    values, text = case
    secrets = registry(values)
    redactor = BytesRedactor(secrets)
    given_out = b"".join([*map(redactor.feed, cut(text.encode(), places)), redactor.finish()])
    assert given_out == secrets.redact(text).encode()


@given(texts())
def test_no_form_of_a_secret_is_left_and_a_second_time_changes_nothing(case):
    values, text = case
    assume(not any(value in f"[redacted:S{number}]" for value in values for number in range(3)))
    secrets = registry(values)
    redacted = secrets.redact(text)
    for value in values:
        for encode in ENCODERS[:3]:
            assert encode(value) not in redacted
    assert secrets.redact(redacted) == redacted


@given(texts(), PLACES)
def test_of_a_secret_in_deltas_at_most_the_revealed_characters_show(case, places):
    values, text = case
    secrets = registry(values)
    redactor = Redactor(secrets, reveal=DELTA_REVEAL)
    pieces = [*map(redactor.feed, cut(text, places)), redactor.finish()]
    shown = "".join(pieces)
    assert not any(value in shown for value in values)
    assert secrets.redact(shown).count("[redacted:") == shown.count("[redacted:")
    if secrets.redact(text) == text:
        assert shown == text


@given(st.text(max_size=200), PLACES)
def test_text_without_secrets_passes_unchanged_and_each_delta_is_one_piece(text, places):
    secrets = registry(["sk-0123456789-ab", "tk_9876543210_zy"])
    assume(secrets.redact(text) == text)
    assume(not any(begin in text for begin in ("sk-012", "tk_987")))
    pieces = cut(text, places)
    redactor = Redactor(secrets, reveal=DELTA_REVEAL)
    assert [redactor.feed(piece) for piece in pieces] == pieces
    assert redactor.finish() == ""


@given(st.binary(max_size=100), PLACES)
def test_a_secret_split_at_every_offset_never_leaks(noise, places):
    value = "p4ss/word+é=1"
    secrets = registry([value])
    for encode in ENCODERS:
        planted = encode(value).encode()
        for offset in range(len(planted) + 1):
            redactor = BytesRedactor(secrets)
            pieces = [*cut(noise, places), planted[:offset], planted[offset:], noise]
            given_out = b"".join([*map(redactor.feed, pieces), redactor.finish()])
            assert planted not in given_out
            assert b"[redacted:S0]" in given_out
