"""What an export does not take along."""

import pytest

from acp_bridge.cli.redaction import SecretFinder
from acp_bridge.cli.rewrite import Rewriter
from bash_exec.secrets import SecretRegistry
from tests.support.session_turns import delta, events_of, step_end

KEY = "value-of-the-key-42"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----"


def rewriter(**known):
    secrets = SecretRegistry()
    for name, value in known.items():
        secrets.add(name, value, configured=True)
    return Rewriter(SecretFinder(secrets))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"the key {KEY}.", "the key [redacted:KEY]."),
        (KEY.encode().hex(), "[redacted:KEY]"),
        ("sk-abcdefghijklmnop1234 ghp_" + "a" * 30, "[looks like a secret] [looks like a secret]"),
        (f"a\n{PEM}\nb", "a\n[looks like a secret]\nb"),
        (PEM[:40], "[looks like a secret]"),
        (f"{PEM}{PEM}", "[looks like a secret][looks like a secret]"),
        ("https://me:pass@host/x", "https:[looks like a secret]host/x"),
        # the one reaches into the other: neither may end where the other goes on
        (f"Bearer abcdefghijklm{KEY}!", "[redacted:KEY]!"),
        (f"{KEY}@x", "[redacted:KEY]@x"),
        ("nothing at all, sk-short", "nothing at all, sk-short"),
    ],
)
def test_known_secrets_and_what_looks_like_one_are_taken_out(text, left):
    assert rewriter(KEY=KEY).text(text) == left


def test_a_known_secret_that_goes_on_behind_what_looks_like_one_is_taken_out_whole():
    secret = "abcdefghijklmnopqrstuvw!tail-of-it"
    assert rewriter(KEY=secret).text(f"Bearer {secret}.") == "[redacted:KEY]."
    # and the other way round: it begins as a known one
    assert rewriter(KEY="sk-abcdef").text("sk-abcdefghijklmnop1234.") == "[redacted:KEY]."


def test_what_was_taken_out_is_counted_by_name():
    taken = rewriter(KEY=KEY)
    taken.json({"a": [KEY, f"{KEY} {KEY}"], KEY: "sk-abcdefghijklmnop1234"})
    assert taken.counts == {"KEY": 4, "what looks like a secret": 1}


@pytest.mark.parametrize("size", [1, 3, 10])
def test_a_secret_in_deltas_of_any_size_leaves_nothing_behind(size):
    said = f"your key is {KEY} and sk-abcdefghijklmnop1234, keep it"
    taken = rewriter(KEY=KEY)
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    fed = events_of([*(delta(1, 1, piece) for piece in pieces), step_end(1, 1)])
    events = [done for event in fed for done in taken.feed(event)]
    texts = [event.data["chunk"]["text"] for event in events[:-1]]
    assert "".join(texts) == "your key is [redacted:KEY] and [looks like a secret], keep it"
    assert taken.counts == {"KEY": 1, "what looks like a secret": 1}
