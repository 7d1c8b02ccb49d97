from typing import Any

import pytest

from acp_bridge.testing.conversation import Conversation
from acp_bridge.testing.editor import Entry

MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "full"}]}


def ask(request_id: int, method: str, **params: Any) -> Entry:
    return Entry("client", {"id": request_id, "method": method, "params": params})


def answer(request_id: Any, **result: Any) -> Entry:
    return Entry("agent", {"id": request_id, "result": result})


def update(kind: str, session: str = "s", **fields: Any) -> Entry:
    return Entry(
        "agent",
        {"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}},
    )


def card(kind: str, status: str | None = None, call: str = "c") -> Entry:
    return update(kind, toolCallId=call, **({"status": status} if status else {}))


START = [ask(1, "initialize"), answer(1), ask(2, "session/new"), answer(2, sessionId="s", modes=MODES)]
PROMPT = ask(3, "session/prompt", sessionId="s")


def judged(*entries: Entry) -> list[str]:
    return Conversation().violations([*START, *entries])


def test_an_orderly_turn_breaks_no_rule():
    chunk = {"type": "text", "text": "x"}
    assert not judged(
        PROMPT,
        update("agent_message_chunk", content=chunk),
        card("tool_call", "pending"),
        card("tool_call_update", "in_progress"),
        card("tool_call_update"),
        card("tool_call_update", "completed"),
        update("current_mode_update", currentModeId="full"),
        answer(3, stopReason="end_turn"),
    )


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([PROMPT], ["session/prompt (request 3) was never answered"]),
        ([PROMPT, answer(3), answer(3)], ["a response to no open request: 3 (answered twice?)"]),
        ([answer("x")], ['a response to no open request: "x" (answered twice?)']),
        ([answer(None)], []),
        ([update("plan", session="t")], ["session/update for session t, which the client does not know (yet)"]),
        ([card("tool_call_update")], ["card c was updated before it was announced"]),
        ([card("tool_call"), card("tool_call")], ["card c was announced twice"]),
        (
            [card("tool_call", "in_progress"), card("tool_call_update", "pending")],
            ["card c went from in_progress back to pending"],
        ),
        ([PROMPT, card("tool_call"), answer(3)], ["card c is still pending when its prompt is answered"]),
        ([update("current_mode_update", currentModeId="x")], ["mode x is not among those available"]),
        ([update("agent_thought_chunk", content={"text": ""})], ["agent_thought_chunk with an empty text"]),
        ([ask(3, "session/new"), answer(3, sessionId="s")], ["session id s was handed out twice"]),
        ([ask(3, "session/set_mode", sessionId="gone"), answer(3)], []),
        ([Entry("agent", {"method": "_own", "params": None})], []),
        ([Entry("agent", {"method": "_own", "params": {"sessionId": "s"}})], []),
        (
            [
                ask(3, "session/load", sessionId="l"),
                update("plan", session="l"),
                answer(3, modes={**MODES, "currentModeId": "x"}),
            ],
            ["mode x is not among those available"],
        ),
    ],
)
def test_a_broken_rule_is_named(entries, found):
    assert judged(*entries) == found


def test_after_a_cancelled_turn_only_the_sessions_state_is_told_until_the_next_prompt():
    chunk = update("agent_message_chunk", content={"text": "x"})
    cancelled = [PROMPT, answer(3, stopReason="cancelled")]
    assert judged(*cancelled, update("usage_update")) == []
    assert judged(*cancelled, chunk) == ["agent_message_chunk after the cancelled turn was answered"]
    assert judged(*cancelled, ask(4, "session/prompt", sessionId="s"), chunk, answer(4)) == []


def test_client_methods_need_their_capability():
    read = Entry("agent", {"id": 1, "method": "fs/read_text_file", "params": {"sessionId": "s"}})
    terminal = Entry("agent", {"id": 1, "method": "terminal/create", "params": {"sessionId": "s"}})
    assert judged(read) == ["fs/read_text_file, though the client did not advertise it"]
    assert judged(terminal) == ["terminal/create, though the client did not advertise it"]
    able = ask(1, "initialize", clientCapabilities={"fs": {"readTextFile": True}, "terminal": True})
    assert Conversation().violations([able, *START[1:], read, terminal]) == []


def test_what_the_client_only_tells_or_answers_asks_for_no_answer():
    cancel = Entry("client", {"method": "session/cancel", "params": {"sessionId": "s"}})
    assert judged(cancel, Entry("client", {"id": 1, "result": {}})) == []


def test_a_new_connection_forgets_the_sessions():
    again = [ask(5, "initialize"), answer(5)]
    assert judged(*again, update("plan")) == ["session/update for session s, which the client does not know (yet)"]
    loading = [ask(6, "session/load", sessionId="s"), update("plan"), answer(6)]
    assert judged(*again, ask(7, "session/prompt", sessionId="s"), answer(7), *loading) == []
