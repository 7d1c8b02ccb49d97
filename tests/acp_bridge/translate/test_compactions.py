"""A compaction is ended by what follows it, also where its end was never written."""

import pytest

from acp_bridge.schema import ClientCapabilities
from acp_bridge.translate.v1.compactions import LINE
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import make_event


def rendered(*pairs, advertised=True):
    capabilities = ClientCapabilities(compaction=advertised)
    renderer = UpdateRenderer(lambda _n: None, capabilities, cwd="/p", window=lambda: None, live=True)
    return [
        update for seq, pair in enumerate(pairs) for update in renderer.render(make_event(pair[0], seq, 0, pair[1]))
    ]


CALL = {"model": "m", "provider": "p", "fingerprint": "f"}
BEGIN = ("request/header", {**CALL, "turn": 2, "step": 1, "purpose": "compaction"})
DONE = ("history/compacted", {"fromSeq": 0, "toSeq": 1, "summary": "s"})


def end(kind, **fields):
    return "turn/end", {"turn": 2, "reason": {"kind": kind, **fields}}


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (DONE, "completed"),
        (("step/start", {"turn": 2, "step": 2}), "failed"),
        (end("error", message="down"), "failed"),
        (end("interrupted"), "cancelled"),
        (end("aborted"), "cancelled"),
        (end("disposed"), "cancelled"),
    ],
)
def test_it_is_ended_once_by_what_follows(event, status):
    updates = rendered(BEGIN, event, event)
    assert [update["status"] for update in updates] == ["in_progress", status]
    assert updates[-1].get("error") == event[1].get("reason", {}).get("message")


def test_without_the_capability_there_is_one_line_and_no_end():
    updates = rendered(BEGIN, DONE, end("completed"), advertised=False)
    assert [(update["content"]["text"], update["messageId"]) for update in updates] == [(LINE, "n0")]


def test_other_calls_and_summaries_of_older_logs_show_nothing():
    assert rendered(("request/header", {**CALL, "turn": 1, "step": 1}), DONE, end("completed")) == []


def test_the_answer_of_the_next_step_is_shown_again():
    chunk = {"type": "text-delta", "index": 0, "text": "a"}
    updates = rendered(BEGIN, DONE, ("assistant/chunk", {"turn": 2, "step": 2, "chunk": chunk}))
    assert updates[-1]["sessionUpdate"] == "agent_message_chunk"
