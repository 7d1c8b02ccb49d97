"""Replacing parts of a log: however a text is split over deltas, it reads as if it had been rewritten whole."""

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from acp_bridge.cli.redaction import SecretFinder
from acp_bridge.cli.remap import PathMap
from acp_bridge.cli.rewrite import Edit, Rewriter
from agent_loop.session.events import make_event
from bash_exec.secrets import SecretRegistry

PIECES = st.lists(
    st.tuples(
        st.sampled_from([(0, "text-delta"), (1, "reasoning-delta"), (1, "text-delta")]), st.text("<>ab", max_size=5)
    ),
    max_size=40,
)


def brackets(text):
    """`<…>` with up to 4 letters inside."""
    return [Edit(found.start(), found.end(), f"({len(found[0])})", "it") for found in re.finditer(r"<[ab]{0,4}>", text)]


def event(seq, event_type, data):
    return make_event(event_type, seq, seq, data)


def delta(seq, stream, text):
    index, kind = stream
    return event(seq, "assistant/chunk", {"turn": 1, "step": 1, "chunk": {"type": kind, "index": index, "text": text}})


def texts(events):
    found = {}
    for each in events:
        chunk = each.data.get("chunk", {})
        if "text" in chunk:
            found.setdefault((chunk["index"], chunk["type"]), []).append(chunk["text"])
    return found


@given(PIECES, st.integers(1, 12), st.sets(st.integers(0, 40)), st.booleans())
def test_texts_in_pieces_read_like_the_whole_text_rewritten(pieces, held, interruptions, ended):
    fed = []
    for number, (stream, text) in enumerate(pieces):
        fed.append(delta(len(fed), stream, text))
        if number in interruptions:
            fed.append(event(len(fed), "mode/change", {"modeId": "<a>"}))
    if ended:
        fed.append(event(len(fed), "step/end", {"turn": 1, "step": 1}))
    rewriter = Rewriter(brackets, held_events=held, longest=6)
    done = [each for given_event in fed for each in rewriter.feed(given_event)]
    done += rewriter.finish()
    assert [(each.seq, each.type) for each in done] == [(each.seq, each.type) for each in fed]
    whole = Rewriter(brackets)
    expected = {stream: whole.text("".join(parts)) for stream, parts in texts(fed).items()}
    assert {stream: "".join(parts) for stream, parts in texts(done).items()} == expected
    whole.counts += Counter({"it": sum(each.type == "mode/change" for each in fed)})
    assert rewriter.counts == whole.counts


@given(st.text("ab:/@ -sk", max_size=60), st.text("abk:-", min_size=8, max_size=20))
def test_no_secret_is_left_in_a_text_whatever_stands_around_it(around, secret):
    secrets = SecretRegistry()
    registered = secrets.add("NAME", secret, configured=True)
    redacted = Rewriter(SecretFinder(secrets)).text(f"{around}{secret}{around[::-1]}")
    assert not registered or secret.strip() not in redacted


@given(
    st.lists(st.sampled_from(["/a/b", "/a/b/c", "/x", " ", "z", "-", ".", "/", "file://", '"']), max_size=12),
    st.sampled_from([("/a/b", "/n"), ("/x", "/a/b")]),
)
def test_mapping_a_path_there_and_back_gives_the_text_that_it_was(parts, mapping):
    text = "".join(parts)
    old, new = mapping
    there = Rewriter(PathMap([(old, "/only/here")]))
    mapped = there.text(text)
    assert Rewriter(PathMap([("/only/here", old)])).text(mapped) == text
    assert Rewriter(PathMap([(old, new)])).text(text).count(new) >= there.counts[old]
