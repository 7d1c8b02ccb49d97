"""Well-formed session logs for hypothesis: small, with awkward texts and calls that may lack their results."""

from hypothesis import strategies as st

from tests.support.session_turns import (
    Pair,
    answer,
    call,
    call_block,
    call_delta,
    delta,
    result,
    step_end,
    step_start,
    text,
    turn_end,
    turn_start,
    user,
)

TEXTS = st.text(st.sampled_from('ab\n\u2028\x85"\\é😀\0'), max_size=4)
CALL_IDS = st.sampled_from(["a", "b", "call-0", "a#1.1"])
KINDS = st.sampled_from(["completed", "aborted", "error", "refusal"])


@st.composite
def logs(draw: st.DrawFn, *, closed: bool = False) -> list[Pair]:
    """A well-formed log of at most 25 events, which may end anywhere unless `closed`."""
    pairs: list[Pair] = []
    turn = 0
    while len(pairs) < 12 and draw(st.booleans()):
        turn += 1
        pairs.append(turn_start(turn))
        if draw(st.booleans()):
            pairs.append(user(draw(TEXTS)))
        for step in range(1, draw(st.integers(0, 2)) + 1):
            pairs += [step_start(turn, step), *draw(steps(turn, step)), step_end(turn, step)]
        if draw(st.booleans()):
            source = {"kind": "plugin", "plugin": draw(TEXTS)}
            pairs.append(("context/message", {"content": text(draw(TEXTS)), "source": source}))
        pairs.append(turn_end(turn, draw(KINDS)))
    if closed:
        return pairs
    return pairs[: draw(st.integers(0, min(25, len(pairs))))]


@st.composite
def steps(draw: st.DrawFn, turn: int, step: int) -> list[Pair]:
    """What stands in a step; it may lack its message, and calls may lack their results."""
    pairs = [delta(turn, step, draw(TEXTS))]
    calls = draw(st.lists(CALL_IDS, max_size=2, unique=True))
    pairs += [call_delta(turn, step, call_id) for call_id in calls]
    if draw(st.booleans()):
        pairs.append(answer(turn, step, *text(draw(TEXTS)), *map(call_block, calls)))
        for call_id in calls[: draw(st.integers(0, 2))]:
            pairs += [call(turn, step, call_id), result(turn, step, call_id, draw(TEXTS))]
    return pairs
