"""A crash at every byte of a turn with tools and behind every event of a longer log (contract session-log.md §8, §9).

Each time: a repaired beginning or a clear refusal, the same bytes after another load, every call answered, and a
history that takes the next prompt.
"""

import pytest

from agent_loop.session.store import SessionDamagedError
from tests.support.crash_facts import assert_repaired
from tests.support.log_folder import LogFolder, lines_of, log_folder
from tests.support.session_turns import (
    answer,
    call,
    call_block,
    call_delta,
    delta,
    events_of,
    result,
    step_end,
    step_start,
    text,
    text_turn,
    tool_turn,
    turn_end,
    turn_start,
    user,
)

SHARES = 4


def gated(step: int, call_id: str, outcome: str):
    bound = {"callId": call_id, "digest": "d"}
    decision = "permission/decision", {**bound, "outcome": outcome, "by": "user"}
    return [("permission/request", bound), call(2, step, call_id), decision]


# one call was allowed and is answered, the other runs
CALLING = [
    turn_start(2),
    user("é\u2028"),
    step_start(2, 1),
    call_delta(2, 1, "a"),
    answer(2, 1, call_block("a"), call_block("b")),
    *gated(1, "a", "allow"),
    result(2, 1, "a"),
    call(2, 1, "b"),
]
LONG = [
    ("mode/change", {"modeId": "full"}),
    ("command/run", {"commandId": "1", "line": "/help"}),
    ("command/done", {"commandId": "1", "ok": True, "text": "help"}),
    *text_turn(1),
    *CALLING,
    result(2, 1, "b"),
    step_end(2, 1),
    ("context/message", {"content": text("tick"), "source": {"kind": "plugin", "plugin": "loop"}}),
    step_start(2, 2),
    ("request/header", {"turn": 2, "step": 2, "model": "m", "provider": "p", "fingerprint": "f"}),
    ("llm/retry", {"turn": 2, "step": 2, "attempt": 1, "code": "OVERLOADED", "delayMs": 10}),
    *[delta(2, 2, f"{number} ") for number in range(20)],
    answer(2, 2, *text("it ran"), call_block("c")),
    *gated(2, "c", "reject"),
    result(2, 2, "c"),
    user("and this"),
    step_end(2, 2),
    turn_end(2, "max-steps"),
    ("session/title", {"title": "t", "by": "user"}),
    ("from/later", {"turn": 9}),
    *text_turn(3)[:-1],
    turn_end(3, "refusal"),
    *tool_turn(4, "d"),
    turn_start(5),
    step_start(5, 1),
    answer(5, 1, *text("what was said")),
    ("history/compacted", {"fromSeq": 3, "toSeq": 20, "summary": "s"}),
    step_end(5, 1),
    turn_end(5),
    *tool_turn(6, "e"),
]


async def check_cut(folder: LogFolder, content: bytes, size: int, events):
    """Load the first `size` bytes of the log that held `events`."""
    folder.path.write_bytes(content[:size])
    whole = content[:size].count(b"\n") - 1
    if whole < 0:
        with pytest.raises(SessionDamagedError) as caught:
            await folder.load()
        assert (caught.value.line, caught.value.offset) == (1, 0)
        assert folder.path.read_bytes() == content[:size]
        return
    loaded = await folder.load()
    assert loaded[:whole] == events[:whole]
    assert {event.time for event in loaded[whole:]} <= {events[whole - 1].time}
    assert_repaired(loaded)
    after = folder.path.read_bytes()
    assert after.startswith(content[: content[:size].rindex(b"\n") + 1])
    assert await folder.load() == loaded
    assert folder.path.read_bytes() == after


@pytest.mark.parametrize("share", range(SHARES))
async def test_a_turn_with_tools_that_is_cut_at_any_byte_is_repaired_once(share):
    events = events_of([*text_turn(1), *CALLING])
    content = b"".join(lines_of(events))
    assert 1800 < len(content) < 4096
    with log_folder() as folder:
        for size in range(share, len(content) + 1, SHARES):
            await check_cut(folder, content, size, events)


async def test_a_long_log_that_is_cut_behind_any_event_is_repaired_once():
    events = events_of(LONG)
    lines = lines_of(events)
    content = b"".join(lines)
    assert len(events) > 90
    size = 0
    with log_folder() as folder:
        for line in lines:
            size += len(line)
            await check_cut(folder, content, size, events)
