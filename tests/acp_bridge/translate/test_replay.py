"""The transcript on load: joined, bounded, without refused turns."""

from acp_bridge.schema import ClientCapabilities
from acp_bridge.translate.v1.replay import JOINED_LIMIT, OUTPUT_LIMIT, SUMMARY, Replay
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import make_event
from agent_loop.tools.bash import BashTool
from agent_loop.tools.files.write import WriteTool
from bash_exec.fake import FakeBashExecutor


def replay(*events, window=None, refused=()):
    renderer = UpdateRenderer(lambda _n: None, ClientCapabilities(), cwd="/p", window=lambda: window, live=False)
    shown = Replay(renderer, refused)
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


def chunks(text, *, count):
    kind, data = delta(text)
    return [(kind, seq, 0, data) for seq in range(count)]


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
    refused = turn(delta("no"), number=2, end="refusal")
    assert texts(replay(*turn(delta("a")), *refused, *turn(delta("b", step=2), number=3), refused={2})) == ["a", "b"]


def test_what_is_no_conversation_survives_a_refused_turn():
    inside = [delta("no"), ("mode/change", {"modeId": "full"}), ("session/title", {"title": "T", "by": "prompt"})]
    updates = replay(*turn(*inside, end="refusal"), refused={1})
    assert [update["sessionUpdate"] for update in updates] == ["current_mode_update", "session_info_update"]


def test_of_a_long_turn_only_one_frame_waits():
    shown = Replay(UpdateRenderer(lambda _n: None, ClientCapabilities(), cwd="/p", window=lambda: None, live=False))
    ready = [len(shown.feed(make_event(*pair))) for pair in chunks("x" * JOINED_LIMIT, count=5)]
    assert ready == [0, 1, 1, 1, 1]
    assert len(shown.finish()) == 1


def test_a_turn_that_still_runs_is_shown_so_far():
    assert texts(replay(*turn(delta("a"))[:-1])) == ["a"]


def test_long_tool_output_is_summarised():
    output = "y" * (OUTPUT_LIMIT + 1)
    result = {
        "turn": 1,
        "step": 1,
        "callId": "c",
        "content": [{"type": "text", "text": output}, {"type": "image", "url": "u"}],
        "isError": False,
        "meta": {"output": output, "exitCode": 0},
    }
    (card,) = replay(*turn(("tool/result", result)))
    assert len(card["content"][0]["content"]["text"]) < SUMMARY + 100
    assert card["rawOutput"] == {"exitCode": 0}


def test_long_diffs_are_shown_by_their_hunks_before_and_after():
    lines = [f"line {number}\n" for number in range(10_000)]
    old = "".join(lines)
    lines[5000] = "changed\n"
    diffs = [{"path": "/p/a", "oldText": old, "newText": "".join(lines)}]
    call = {"turn": 1, "step": 1, "callId": "c1"}
    arguments = '{"file_path": "a", "content": ""}'
    data = [
        ("permission/request", {"callId": "c1", "digest": "d", "preview": {"diffs": diffs}}),
        ("tool/call", {**call, "name": "write", "arguments": arguments}),
        ("tool/result", {**call, "content": [], "isError": False, "meta": {"diffs": diffs, "line": 5001}}),
    ]
    renderer = UpdateRenderer(
        {"write": WriteTool()}.get, ClientCapabilities(), cwd="/p", window=lambda: None, live=False
    )
    replay = Replay(renderer)
    opened, closed = [
        update for seq, (kind, body) in enumerate(data) for update in replay.feed(make_event(kind, seq, 0, body))
    ]
    assert opened["content"] == closed["content"]
    [hunk] = closed["content"]
    assert hunk["oldText"].splitlines()[3] == "line 5000"
    around = [f"line {number}" for number in range(4997, 5004)]
    assert hunk["newText"].splitlines() == [*around[:3], "changed", *around[4:]]
    assert closed["rawOutput"] == {"line": 5001}


def test_tool_output_up_to_the_limit_is_shown_whole():
    result = {
        "turn": 1,
        "step": 1,
        "callId": "c",
        "content": [{"type": "text", "text": "y" * OUTPUT_LIMIT}],
        "isError": False,
        "meta": {"exitCode": 0},
    }
    (card,) = replay(*turn(("tool/result", result)))
    assert card["content"][0]["content"]["text"] == "y" * OUTPUT_LIMIT


def test_what_a_later_version_has_logged_is_passed_by():
    assert replay(("later/thing", {"any": 1})) == []


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
    half = SUMMARY // 2
    assert shown_output("x" * OUTPUT_LIMIT) == "x" * OUTPUT_LIMIT
    whole = shown_output("a" * half + "b" * OUTPUT_LIMIT + "c" * half)
    assert whole == "a" * half + f"\x1b[0m\n[{OUTPUT_LIMIT} bytes not shown]\n" + "c" * half
    stored = "a" * (half + OUTPUT_LIMIT) + "\x1b[0m\n[70 bytes not shown]\n" + "c" * (half + 20)
    shown = shown_output(stored, outputDropped=70)
    assert shown == "a" * half + f"\x1b[0m\n[{OUTPUT_LIMIT + 90} bytes not shown]\n" + "c" * half


def test_one_long_text_of_a_call_makes_a_summary_of_the_whole_call():
    result = {
        "turn": 1,
        "step": 1,
        "callId": "c",
        "content": [{"type": "text", "text": "z" * OUTPUT_LIMIT}],
        "isError": False,
        "meta": {"output": "z" * (OUTPUT_LIMIT + 1), "exitCode": 0},
    }
    (card,) = replay(*turn(("tool/result", result)))
    assert len(card["content"][0]["content"]["text"]) < SUMMARY + 100
    result["meta"]["output"] = "short"
    result["content"][0]["text"] += "z"
    (card,) = replay(*turn(("tool/result", result)))
    assert len(card["content"][0]["content"]["text"]) < SUMMARY + 100


def test_long_text_of_a_call_without_terminal_output_is_summarised_too():
    result = {"turn": 1, "step": 1, "callId": "c", "content": [], "isError": True}
    result["content"] = [{"type": "text", "text": "z" * (OUTPUT_LIMIT + 1)}]
    (card,) = replay(*turn(("tool/result", result)))
    assert len(card["content"][0]["content"]["text"]) < SUMMARY + 100
