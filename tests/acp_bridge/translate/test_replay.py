"""The transcript on load: joined, bounded, without refused turns."""

from acp_bridge.schema import ClientCapabilities
from acp_bridge.translate.v1.replay import JOINED_LIMIT, OUTPUT_LIMIT, Replay
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import make_event
from agent_loop.tools.bash import BashTool
from bash_exec.fake import FakeBashExecutor


def replay(*events, window=None):
    shown = Replay(UpdateRenderer(lambda _n: None, ClientCapabilities(), cwd="/p", window=lambda: window, live=False))
    updates = []
    for seq, (kind, data) in enumerate(events):
        updates += shown.feed(make_event(kind, seq, 0, data))
    return [*updates, *shown.finish()]


def turn(*events, number=1, end="completed"):
    start = ("turn/start", {"turn": number, "trigger": {"kind": "message", "source": {"kind": "user"}}})
    return [start, *events, ("turn/end", {"turn": number, "reason": {"kind": end}})]


def delta(text, step=1, kind="text"):
    chunk = {"type": f"{kind}-delta", "index": 0, "text": text}
    return ("assistant/chunk", {"turn": 1, "step": step, "chunk": chunk})


def texts(updates):
    return [update["content"]["text"] for update in updates]


def test_chunks_of_one_message_are_joined_and_others_are_not():
    updates = replay(*turn(delta("a"), delta("b"), delta("c", kind="reasoning"), delta("d"), delta("e", step=2)))
    assert texts(updates) == ["ab", "c", "d", "e"]


def test_a_joined_frame_stays_below_its_limit():
    half = "x" * (JOINED_LIMIT // 2)
    assert [len(text) for text in texts(replay(*turn(delta(half), delta(half), delta(half))))] == [
        JOINED_LIMIT,
        JOINED_LIMIT // 2,
    ]


def test_a_refused_turn_is_not_shown():
    refused = turn(delta("no"), end="refusal")
    assert texts(replay(*turn(delta("a")), *refused, *turn(delta("b")))) == ["a", "b"]


def test_a_turn_that_still_runs_is_shown_so_far():
    assert texts(replay(*turn(delta("a"))[:-1])) == ["a"]


def test_long_tool_output_is_summarised():
    output = "y" * (OUTPUT_LIMIT * 2)
    result = {
        "turn": 1,
        "step": 1,
        "callId": "c",
        "content": [{"type": "text", "text": output}, {"type": "image", "url": "u"}],
        "isError": False,
        "meta": {"output": output, "exitCode": 0},
    }
    (card,) = replay(*turn(("tool/result", result)))
    assert len(card["content"][0]["content"]["text"]) < OUTPUT_LIMIT + 100
    assert card["rawOutput"] == {"exitCode": 0}


def test_usage_is_one_frame_at_the_end():
    usage = {"inputTokens": 1, "outputTokens": 2}
    message = ("assistant/message", {"turn": 1, "step": 1, "content": [], "usage": usage})
    updates = replay(*turn(message, message, delta("a")), window=10)
    assert [update["sessionUpdate"] for update in updates] == ["agent_message_chunk", "usage_update"]


def shown_output(output, **meta):
    result = {"turn": 1, "step": 1, "callId": "c", "content": [], "isError": False}
    call = {"turn": 1, "step": 1, "callId": "c", "name": "bash", "arguments": '{"command": "ls", "description": "x"}'}
    bash = BashTool(FakeBashExecutor({}, task_group=None), notify=lambda *_: None)
    shown = Replay(
        UpdateRenderer(
            {"bash": bash}.get, ClientCapabilities(terminal_output=True), cwd="/p", window=lambda: None, live=False
        )
    )
    events = turn(("tool/call", call), ("tool/result", {**result, "meta": {**meta, "exitCode": 0, "output": output}}))
    updates = [
        update for seq, (kind, data) in enumerate(events) for update in shown.feed(make_event(kind, seq, 0, data))
    ]
    return updates[-1]["_meta"]["terminal_output"]["data"]


def test_the_note_in_shortened_terminal_output_counts_everything_that_is_missing():
    half = OUTPUT_LIMIT // 2
    assert shown_output("x" * OUTPUT_LIMIT) == "x" * OUTPUT_LIMIT
    whole = shown_output("a" * half + "b" * 100 + "c" * half)
    assert whole == "a" * half + "\x1b[0m\n[100 bytes not shown]\n" + "c" * half
    stored = "a" * (half + 10) + "\x1b[0m\n[70 bytes not shown]\n" + "c" * (half + 20)
    assert shown_output(stored, outputDropped=70) == "a" * half + "\x1b[0m\n[100 bytes not shown]\n" + "c" * half
