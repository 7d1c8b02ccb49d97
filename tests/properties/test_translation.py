"""Translation: live and reloaded transcripts are equal; cards are well-behaved; every frame is valid."""

from typing import Any

import acp.schema
from hypothesis import given
from hypothesis import strategies as st

from acp_bridge.catalogue import DEEPSEEK_MODELS, Catalogue, Choice, Offer
from acp_bridge.permission.modes import MODES
from acp_bridge.schema import ClientCapabilities
from acp_bridge.translate.v1.replay import Replay
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import NESTED_TYPES, SessionEvent
from agent_loop.tools.bash import BashOutputTool, BashTool
from agent_loop.tools.files.edit import EditTool
from bash_exec.fake import FakeBashExecutor
from tests.support.logs import session_logs
from tests.support.transcript import joined

EXECUTOR = FakeBashExecutor({}, task_group=None)  # type: ignore[arg-type]
TOOLS = {
    "bash": BashTool(EXECUTOR, notify=lambda *_: None),
    "bash_output": BashOutputTool(EXECUTOR),
    "edit": EditTool(),
}
OFFER = Offer(MODES, Catalogue(DEEPSEEK_MODELS), Choice("ask", DEEPSEEK_MODELS[0].value))
CAPABILITIES = st.builds(
    ClientCapabilities, notices=st.booleans(), terminal_output=st.booleans(), compaction=st.booleans()
)


def renderer(capabilities: ClientCapabilities, *, live: bool) -> UpdateRenderer:
    return UpdateRenderer(TOOLS.get, capabilities, cwd="/p", window=lambda: 100, live=live, offer=OFFER)


def reloaded(events: list[SessionEvent], capabilities: ClientCapabilities) -> list[dict[str, Any]]:
    replay = Replay(renderer(capabilities, live=False), refused_turns(events))
    return [*(update for event in events for update in replay.feed(event)), *replay.finish()]


def lived(events: list[SessionEvent], capabilities: ClientCapabilities, data: st.DataObject) -> list[dict[str, Any]]:
    """The live updates, with some of each command's stored output shown while it ran."""
    live, updates = renderer(capabilities, live=True), []
    for event in events:
        if event.type == "tool/result" and (output := event.data.get("meta", {}).get("output")):
            shown = output[: data.draw(st.integers(0, len(output)))]
            middle = data.draw(st.integers(0, len(shown)))
            for part in (shown[:middle], shown[middle:]):
                updates += live.live_output(event.data["callId"], part)
        updates += live.render(event)
    return updates


def comparable(updates: list[dict[str, Any]], events: list[SessionEvent]) -> list[dict[str, Any]]:
    """Less what is set aside: the client's own prompts and command lines, and usage."""
    own = {
        f"u{event.seq}"
        for event in events
        if event.type == "command/run" or (event.type == "user/message" and event.data["source"]["kind"] == "user")
    }
    return joined(
        update for update in updates if update["sessionUpdate"] != "usage_update" and update.get("messageId") not in own
    )


def refused_turns(events: list[SessionEvent]) -> set[int]:
    return {
        event.data["turn"] for event in events if event.type == "turn/end" and event.data["reason"]["kind"] == "refusal"
    }


def without_refused_turns(events: list[SessionEvent]) -> list[SessionEvent]:
    refused = refused_turns(events)
    kept, turn = [], None
    for event in events:
        turn = event.data["turn"] if event.type == "turn/start" else turn
        if turn not in refused or event.type not in NESTED_TYPES:
            kept.append(event)
        if event.type == "turn/end":
            turn = None
    return kept


@given(session_logs(), CAPABILITIES, st.data())
def test_a_reloaded_transcript_equals_the_live_one(events, capabilities, data):
    shown = lived(without_refused_turns(events), capabilities, data)
    assert comparable(shown, events) == comparable(reloaded(events, capabilities), events)


@given(session_logs(), CAPABILITIES, st.booleans(), st.data())
def test_cards_open_once_move_forward_and_close(events, capabilities, live, data):
    updates = lived(events, capabilities, data) if live else reloaded(events, capabilities)
    order = {"pending": 0, "in_progress": 1, "completed": 2, "failed": 2}
    cards: dict[str, int] = {}
    exits: dict[str, int] = {}
    for update in updates:
        if update["sessionUpdate"] == "tool_call":
            assert update["toolCallId"] not in cards
            cards[update["toolCallId"]] = order[update["status"]]
        elif update["sessionUpdate"] == "tool_call_update":
            before = cards[update["toolCallId"]]
            cards[update["toolCallId"]] = now = order[update.get("status", "pending")] if "status" in update else before
            assert now >= before
            exits[update["toolCallId"]] = exits.get(update["toolCallId"], 0) + (
                "terminal_exit" in update["_meta"] if "_meta" in update else 0
            )
        if "rawInput" in update:
            assert isinstance(update["rawInput"], dict)
    assert set(cards.values()) <= {2}
    assert all(count <= 1 for count in exits.values())


@given(session_logs(), CAPABILITIES, st.booleans(), st.data())
def test_every_frame_parses_with_the_official_models(events, capabilities, live, data):
    updates = lived(events, capabilities, data) if live else reloaded(events, capabilities)
    for update in updates:
        if update["sessionUpdate"] == "notice":  # newer than the official Python models
            assert capabilities.notices
        elif update["sessionUpdate"].startswith("compaction_"):
            assert capabilities.compaction
        else:
            acp.schema.SessionNotification.model_validate({"sessionId": "s", "update": update})
        assert "terminal_info" not in update.get("_meta", {}) or capabilities.terminal_output


@given(session_logs(), CAPABILITIES)
def test_two_loads_show_the_same(events, capabilities):
    assert reloaded(events, capabilities) == reloaded(events, capabilities)
