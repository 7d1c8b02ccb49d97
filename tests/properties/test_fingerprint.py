"""Properties of the fingerprint (contracts session-log.md §3, properties.md)."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from agent_loop.llm.fingerprint import Scrub, fingerprint, request_parameters
from agent_loop.vocabulary import text_block
from tests.support.llm_request import llm_request

UUIDS = [f"{digit * 8}-6d0f-4a53-9d61-3a8b6a3c0d11" for digit in "abC"]
# what stands between messages may be a part of an id or of a directory's name, too
IDS = st.sampled_from(["s1", "}", "},{", ",", '"},{"', "[", "]", "role", "messages", "user", UUIDS[0]])
CWDS = st.sampled_from(["/w/one", "/w/},{", '/w/"odd"', None])
PIECES = st.sampled_from(["/w/one", "/w/},{", '/w/"odd"', "/spill", "x", "-", "}", ",", " ", "s1", "role", *UUIDS])
TEXTS = st.lists(PIECES, max_size=4).map("".join)
MESSAGES = st.builds(
    lambda role, texts: {"role": role, "content": [text_block(text) for text in texts]},
    st.sampled_from(["user", "assistant"]),
    st.lists(TEXTS, max_size=2),
)
TOOLS = st.lists(st.builds(lambda name: {"name": name, "description": name, "parameters": {}}, TEXTS), max_size=2)
SETTINGS = st.fixed_dictionaries(
    {"system": st.none() | TEXTS, "tools": TOOLS, "temperature": st.sampled_from([None, 1, 1.0])}
)


@given(IDS, CWDS, st.lists(st.tuples(st.lists(MESSAGES, max_size=3), st.integers(0, 2), SETTINGS), max_size=5))
def test_what_is_known_of_the_requests_before_changes_no_fingerprint(session_id, cwd, calls):
    def scrub():
        return Scrub(cwd=cwd, session_id=session_id, spill_root="/spill")

    kept, history = scrub(), []
    for new, gone, settings in calls:
        history = history[: max(0, len(history) - gone)] + new
        for messages in (history, [*history, *new]):
            request = llm_request(messages=messages, session_id=session_id, **settings)
            names = ("messages", "system", "tools")
            parts = {name: getattr(request, name) for name in names} | {"parameters": request_parameters(request)}
            whole = scrub().canonical(parts).encode()
            assert fingerprint(request, scrub=kept) == hashlib.sha256(whole).hexdigest()
