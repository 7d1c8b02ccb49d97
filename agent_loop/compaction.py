"""A conversation made shorter: the model summarises its older part (contracts agent-loop.md §3, session-log.md §6).

May not know: the inbox, editors, who asked for it. Invariant: what is summarised ends between two exchanges, so that no
call is parted from its result; the log keeps everything; only `history/compacted`, the last event of a summary that
succeeded, changes the history, so that a failed, cancelled or crashed one leaves it as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal

from agent_loop.abort import cancel_on_abort
from agent_loop.errors import LlmError
from agent_loop.session.derive import Entry
from agent_loop.session.log import Session
from agent_loop.session.store import SessionStoreError
from agent_loop.step import AgentOptions, StepResult, TurnContext, begin_step, log_answer, prepare_call, pull
from agent_loop.vocabulary import Block, JsonObject, Message, text_block

Cause = Literal["threshold", "command", "overflow"]

CHARACTERS_PER_TOKEN: Final = 4
"""A rough guess: what was counted exactly, by the provider, is only known of whole requests."""
KEPT_TOKENS: Final = 20_000
"""The most that stays verbatim behind a summary; of a small window a tenth of it."""
LEAST_TOKENS: Final = 1_000
"""Less than this is not worth a model call, unless somebody asks for it."""
_PART_OF_WINDOW: Final = 0.6
_SHORT: Final = 2_000
_IMAGE_CHARACTERS: Final = 6_000

_ASK: Final = """\
The conversation above is about to be replaced by a summary, so that it goes on fitting into your context. Write that \
summary now, as text, without calling any tool. You will read it instead of the conversation, and nothing else of it \
will be left; so write down everything that is needed to go on as if nothing had happened:

1. What the user asked for: every request that still matters, in their own words where the wording matters.
2. What was decided and found out, with the reasons; what the user wants done or not done, and how.
3. The state of the work: files read, made and changed (full paths) and what matters in them, with the code or the \
values that are still needed; commands run and what they said; errors met and how they were solved.
4. What is being done right now, and the next step.

Be complete in facts and short in words. Begin with the summary itself, in the language of the conversation."""
_LEFT_OUT: Final = "[The beginning of the conversation is left out here: it is longer than the context of the model.]"

COMPACTION_FAILED: Final = "COMPACTION_FAILED"
"""The code of a turn that failed because it was to give a summary; its notice was logged."""


class CompactionError(LlmError):
    """There is no summary."""

    def __init__(self, why: str) -> None:
        super().__init__(why, COMPACTION_FAILED)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be summarised: the `messages` of the events `first` to `last`; `total` is the size of all, in
    characters."""

    first: int
    last: int
    messages: list[Message]
    total: int


def is_due(used: int | None, options: AgentOptions) -> bool:
    """Whether a context of which `used` tokens are filled has passed the threshold; unknown sizes never have."""
    if used is None or options.window is None or options.compact_at is None:
        return False
    return used >= options.compact_at * options.window


async def plan_room(session: Session, options: AgentOptions) -> Plan | None:
    """What is to be summarised now, because the threshold has been passed; None when it has not, or nothing is."""
    if not is_due(session.context_size, options):
        return None
    try:
        entries = await session.entries()
    except SessionStoreError:
        # the turn that follows meets the same, behind its wall
        return None
    return plan_compaction(entries, options, cause="threshold")


def plan_compaction(entries: Sequence[Entry], options: AgentOptions, *, cause: Cause) -> Plan | None:
    """What of the history is summarised; None when nothing is worth it.

    The last turns stay verbatim as far as they fit into what is kept (`/compact` keeps one); where not even the last
    one does, its last steps; where a single step does not, nothing is kept but a prompt that has no answer yet.
    """
    sizes = [_size(entry.message) for entry in entries]
    cut = _cut(entries, sizes, options, cause=cause)
    if cut == 0 or (cause == "threshold" and sum(sizes[:cut]) < LEAST_TOKENS * CHARACTERS_PER_TOKEN):
        return None
    taken = entries[:cut]
    return Plan(taken[0].seq, taken[-1].seq, [entry.message for entry in taken], sum(sizes))


async def compact(
    context: TurnContext, plan: Plan, *, turn: int, step: int, cause: Cause, instructions: str = ""
) -> bool:
    """One step that asks the model for the summary; its `step/end` is appended by the turn. False when aborted.

    Raises `CompactionError`, `LlmError` and what a step raises.
    """
    ids, redactor = begin_step(context, turn=turn, step=step)
    result: StepResult | None = None
    with cancel_on_abort(context.signal):
        if not context.signal.aborted:
            messages = [*_fitted(plan, context.options, cause=cause), _request(instructions)]
            call = await prepare_call(context, turn=turn, step=step, messages=messages, purpose="compaction")
            result = await pull(context, call, ids, redactor)
    if result is None or context.signal.aborted or result.finish["kind"] == "aborted":
        return False
    summary = _summary(result)
    log_answer(context.session, [], result.usage, turn=turn, step=step)
    context.session.append("history/compacted", {"fromSeq": plan.first, "toSeq": plan.last, "summary": summary})
    return True


def not_summarised(failure: LlmError) -> JsonObject:
    """The `session/notice` of a failed attempt that nobody had asked for."""
    return {
        "severity": "warning",
        "title": "The conversation could not be summarised",
        "description": f"It stays as it is, and its context runs full. {failure.message}",
    }


def _summary(result: StepResult) -> str:
    result.check()
    kind = result.finish["kind"]
    text = "".join(block["text"] for block in result.content if block["type"] == "text").strip()
    if kind == "refusal":
        raise CompactionError("the model refused to summarise the conversation")
    if not text:
        raise CompactionError("the model gave no summary")
    return f"{text}\n[The summary was cut off here.]" if kind == "max-tokens" else text


def _request(instructions: str) -> Message:
    asked = f"{_ASK}\n\nThe user adds: {instructions}" if instructions else _ASK
    return {"role": "user", "content": [text_block(asked)]}


def _cut(entries: Sequence[Entry], sizes: Sequence[int], options: AgentOptions, *, cause: Cause) -> int:
    """The index of the first entry that is kept; `len(entries)`: none is."""
    kept = KEPT_TOKENS if options.window is None else min(KEPT_TOKENS, options.window // 10)
    left = _from_each(sizes)
    places = [at for at in range(1, len(entries)) if not _is_result(entries[at].message)]
    # a prompt is preferred to a step in the middle of a turn
    prompts = [at for at in places if entries[at].prompt]
    for wanted in (prompts[-1:] if cause == "command" else prompts, places):
        for at in wanted:
            if left[at] <= kept * CHARACTERS_PER_TOKEN:
                return at
    last = max((at for at in range(len(entries)) if entries[at].prompt), default=len(entries))
    answered = any(entry.message["role"] == "assistant" for entry in entries[last:])
    return len(entries) if answered else last


def _from_each(sizes: Sequence[int]) -> list[int]:
    """For each place, the size from there to the end."""
    return [*accumulate(reversed(sizes))][::-1]


def _is_result(message: Message) -> bool:
    return any(block["type"] == "tool-result" for block in message["content"])


def _size(message: Message) -> int:
    """Characters, about."""
    return sum(map(_block_size, message["content"]))


def _block_size(block: Block) -> int:
    if block["type"] == "image":
        return _IMAGE_CHARACTERS
    inner: list[Block] = block["content"] if block["type"] == "tool-result" else []
    texts = (block.get(name) for name in ("text", "arguments", "uri"))
    return sum(len(text) for text in texts if isinstance(text, str)) + sum(map(_block_size, inner))


def _fitted(plan: Plan, options: AgentOptions, *, cause: Cause) -> list[Message]:
    """The messages as the model can be given them; unchanged when they fit, so that its cache knows them."""
    limits = [int(options.window * CHARACTERS_PER_TOKEN * _PART_OF_WINDOW)] if options.window else []
    if cause == "overflow":
        # how many characters the context holds is not known, but that all of them were too many
        limits.append(plan.total // 2)
    limit = min(limits, default=None)
    if limit is None or sum(map(_size, plan.messages)) <= limit:
        return plan.messages
    messages = [_shortened(message) for message in plan.messages]
    left = _from_each([_size(message) for message in messages])
    start = 0
    while start < len(messages) and (left[start] > limit or _is_result(messages[start])):
        start += 1
    left_out: list[Message] = [{"role": "user", "content": [text_block(_LEFT_OUT)]}] if start else []
    return [*left_out, *messages[start:]]


def _shortened(message: Message) -> Message:
    return {"role": message["role"], "content": [_short_block(block) for block in message["content"]]}


def _short_block(block: Block) -> Block:
    if block["type"] == "tool-result":
        return {**block, "content": [_short_block(inner) for inner in block["content"]]}
    if block["type"] == "image":
        return text_block("[an image]")
    if block["type"] in ("text", "resource") and "text" in block:
        return {**block, "text": _short(block["text"])}
    return block


def _short(text: str) -> str:
    if len(text) <= 2 * _SHORT:
        return text
    return f"{text[:_SHORT]}\n[… {len(text) - 2 * _SHORT} characters left out …]\n{text[-_SHORT:]}"
