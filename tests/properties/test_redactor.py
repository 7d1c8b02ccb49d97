"""A secret never leaks, however it is cut; text without secrets passes unchanged."""

import base64
import json
import re
import textwrap
from itertools import pairwise
from urllib.parse import quote, quote_plus

from hypothesis import assume, example, given
from hypothesis import strategies as st

from bash_exec.secret_forms import SHORTEST
from bash_exec.secrets import DELTA_REVEAL, BytesRedactor, Redactor, SecretRegistry

# few characters, so that secrets overlap, contain and continue each other
SECRETS = st.lists(st.text("ab1-/é ", min_size=8, max_size=14).map(lambda text: f"={text}=x"), max_size=3)
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
MARK = re.compile(r"\[redacted:S\d\]")
GAP = re.compile(r"[ \t\r\n:,]+")


def lines(text, width, end):
    """`text` in lines of `width` characters, as `base64` and `xxd -p` print it."""
    return end.join(textwrap.wrap(text, width, break_on_hyphens=False))


def pairs(text, between):
    """Hex digits in groups of two, as `od` and fingerprints show them."""
    return between.join(textwrap.wrap(text, 2))


def assert_reads_like(shown, whole):
    """The same text and the same marks, but for the few characters that may stand revealed before a mark."""
    assert MARK.findall(shown) == MARK.findall(whole)
    for piece, expected in zip(MARK.split(shown), MARK.split(whole), strict=True):
        assert piece.startswith(expected)
        assert len(GAP.sub("", piece[len(expected) :])) <= DELTA_REVEAL


@given(texts(), PLACES)
def test_a_stream_reads_like_the_whole_text_redacted_at_once(case, places):
    values, text = case
    secrets = registry(values)
    redactor = Redactor(secrets)
    assert_reads_like("".join([*map(redactor.feed, cut(text, places)), redactor.finish()]), secrets.redact(text))


@given(texts(), PLACES)
def test_bytes_read_like_the_text(case, places):
    values, text = case
    secrets = registry(values)
    redactor = BytesRedactor(secrets)
    given_out = b"".join([*map(redactor.feed, cut(text.encode(), places)), redactor.finish()])
    assert_reads_like(given_out.decode(errors="replace"), secrets.redact(text, cut=True))


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


VALUES = st.text("ab1-/é", min_size=8, max_size=60).map(lambda text: f"{text}=x")
DUMPS = st.one_of(
    st.tuples(st.just(0), st.integers(4, 76), st.sampled_from(["\n", "\r\n", "\n        ", " \n "])).map(
        lambda how: lambda value: lines(base64.b64encode(value.encode()).decode(), *how[1:])
    ),
    st.tuples(st.integers(4, 60), st.sampled_from(["\n", "\r\n"])).map(
        lambda how: lambda value: lines(value.encode().hex(), *how)
    ),
    st.sampled_from([" ", ":", ", ", "\n", "\t"]).map(
        lambda between: lambda value: pairs(value.encode().hex(), between)
    ),
    st.just(lambda value: pairs(value.encode().hex().upper(), " ")),
)


@given(VALUES, DUMPS, st.text("ab1 \n:", max_size=30), PLACES)
@example(
    "a secret of more than sixty characters, so that its base64 is wrapped",
    lambda v: base64.encodebytes(v.encode()).decode(),
    "",
    [],
)
def test_a_dump_of_a_secret_is_found_whatever_stands_between_its_characters(value, dump, noise, places):
    secrets = registry([value])
    text = f"{noise}\n--{dump(value)}--\n{noise}"
    whole = secrets.redact(text)
    assert whole.count("[redacted:S0]") == 1
    redactor = BytesRedactor(secrets)
    pieces = [*map(redactor.feed, cut(text.encode(), places)), redactor.finish()]
    assert_reads_like(b"".join(pieces).decode(), whole)


@given(VALUES, st.sampled_from(ENCODERS), st.integers(0, 200), PLACES)
@example("1111éé11=x", ENCODERS[0], 6, [])
@example("éééééééé-1=x", ENCODERS[0], 9, [])
def test_of_a_secret_that_the_end_of_the_output_cuts_off_too_little_is_left_to_matter(value, encode, end, places):
    secrets = registry([value])
    printed = encode(value)[:end]
    redactor = BytesRedactor(secrets)
    given_out = b"".join([*map(redactor.feed, cut(f"-- {printed}".encode(), places)), redactor.finish()]).decode()
    assert given_out == secrets.redact(f"-- {printed}", cut=True)
    rest = given_out.removeprefix("-- ").lstrip('"')
    ordinary = rest.isalpha() or rest.isdigit() or rest.startswith("/")
    others = 3  # characters of base64 in which the bytes before the value have a part
    assert "[redacted:S0]" in rest or len(rest) < SHORTEST + others or ordinary


@given(st.lists(st.integers(0, 999), max_size=300), st.sampled_from([" ", "\n", ", ", ":"]))
@example([*range(31, 40), 30], "\n")
@example([*range(30, 40), 39, 38, 37, 36, 35, 34, 33, 32, 31], " ")
def test_columns_of_numbers_are_no_dump_of_one(numbers, between):
    secrets = registry(["1234567890", "0987654321"])
    text = between.join(map(str, numbers))
    assume("1234567890" not in text)
    assert secrets.redact(text, cut=True) == text


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
