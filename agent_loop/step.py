"""One step: one model call and the tools that it asked for (contract agent-loop.md §3).

May not know: the inbox, other steps, why the turn runs. Invariant: at most one `llm.stream`; every chunk stands in the
log before anybody assembles it; a step that aborts or fails writes no `assistant/message` and runs no tool.
"""

from asyncio import get_running_loop
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from anyio.lowlevel import checkpoint

from agent_loop.abort import AbortSignal, cancel_on_abort
from agent_loop.composer import Composer
from agent_loop.errors import LlmError
from agent_loop.hooks import Hooks
from agent_loop.llm.assembler import BlockAssembler
from agent_loop.llm.chunk_redactor import ChunkRedactor
from agent_loop.llm.history import ReasoningPolicy
from agent_loop.llm.seam import LlmRequest, RetryNotice
from agent_loop.llm.service import LlmService
from agent_loop.prompt import Sections
from agent_loop.session.log import Session
from agent_loop.tools.call_ids import CallIds
from agent_loop.tools.dispatch import ToolDispatch
from agent_loop.tools.registry import ToolRegistry
from agent_loop.vocabulary import Block, FinishReason, JsonObject, Message, StreamChunk, Usage

# an adapter that has much buffered awaits nothing; the rest of the process must get its turn all the same
_CHUNKS_PER_CHECKPOINT: Final = 64


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How an agent talks to its model.

    `reasoning` and `merge_users` are what the model's provider demands of a history; `effort` is a thinking level of
    the model (None: its own); `window` is the size of its context in tokens (None: unknown), `images`: it takes some;
    `compact_at`: the share of the window from which on older turns are summarised (None: never by itself);
    `max_steps` ends a turn; `spill_root` is where truncated tool output is kept (masked in fingerprints).
    """

    provider: str
    model: str
    system_prompt: Sections
    reasoning: ReasoningPolicy = "echo"
    merge_users: bool = False
    effort: str | None = None
    window: int | None = None
    images: bool = False
    compact_at: float | None = None
    max_steps: int = 200
    spill_root: str | None = None


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What the steps of one turn share. `agent` is what listeners are handed, opaque here."""

    agent: Any
    session: Session
    options: AgentOptions
    llm: LlmService
    tools: ToolRegistry
    dispatch: ToolDispatch
    hooks: Hooks
    composer: Composer
    signal: AbortSignal

    def notify(self, name: str, *args: Any) -> None:
        """Emit `name(agent, *args)`."""
        self.hooks.emit(name, self.agent, *args, agent=self.session.id)

    async def through(self, name: str, value: Any) -> Any:
        """`value` as the around-chain `name` returns it: `async layer(value, next) -> value`."""
        if not self.wrapped(name):
            return value
        return await self.hooks.around(name, _as_it_is, agent=self.session.id)(value)

    def wrapped(self, name: str) -> bool:
        """Whether `through(name, …)` calls anybody."""
        return self.hooks.wrapped(name, agent=self.session.id)


async def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class StepResult:
    """What the model answered; the value of the around-chain `agent/step-result`."""

    content: list[Block]
    usage: Usage | None
    finish: FinishReason

    def check(self) -> None:
        """Raises `LlmError` when the call has failed."""
        if self.finish["kind"] == "error":
            raise LlmError(self.finish.get("message", "the model call failed"), self.finish.get("code", "ERROR"))


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """How a step ended: the finish kind (`"aborted"` also when the turn's signal aborted it), and whether tools ran."""

    finish: str
    ran_tools: bool = False


_ABORTED: Final = StepOutcome("aborted")


def begin_step(context: TurnContext, *, turn: int, step: int) -> tuple[CallIds, ChunkRedactor]:
    """Append `step/start`, whose `step/end` is appended by the turn; what `pull` needs for the answer of the step."""
    session = context.session
    session.append("step/start", {"turn": turn, "step": step})
    context.notify("agent/step-start", turn, step)
    return CallIds(session.call_ids(), turn=turn, step=step), ChunkRedactor(session.secrets)


def log_answer(session: Session, content: list[Block], usage: Usage | None, *, turn: int, step: int) -> None:
    """Append the `assistant/message`."""
    message: JsonObject = {"turn": turn, "step": step, "content": content}
    if usage is not None:
        message["usage"] = usage
    session.append("assistant/message", message)


async def run_step(context: TurnContext, *, turn: int, step: int) -> StepOutcome:
    """Run step number `step`, all but its `step/end`.

    Raises `LlmError` for a failed call, `PersistenceError` when the log cannot be written, and whatever a layer raises.
    """
    ids, redactor = begin_step(context, turn=turn, step=step)
    result: StepResult | None = None
    with cancel_on_abort(context.signal):
        if not context.signal.aborted:
            call = await prepare_call(context, turn=turn, step=step)
            result = await context.through("agent/step-result", await pull(context, call, ids, redactor))
    if result is None or context.signal.aborted:
        return _ABORTED
    kind = result.finish["kind"]
    if kind == "aborted":
        return _ABORTED
    result.check()
    cut = kind in ("max-tokens", "refusal")
    blocks = [block for block in result.content if not (cut and block["type"] == "tool-call")]
    content = ids.in_message(blocks)
    log_answer(context.session, content, result.usage, turn=turn, step=step)
    calls = [block for block in content if block["type"] == "tool-call"]
    if calls:
        exact = _exact_arguments(redactor, blocks, content)
        await context.dispatch.run(calls, turn=turn, step=step, exact=exact)
    return StepOutcome(kind, ran_tools=bool(calls))


def _exact_arguments(redactor: ChunkRedactor, blocks: list[Block], content: list[Block]) -> dict[str, str]:
    """By id, the arguments as the model wrote them, of the calls whose arguments are logged redacted."""
    return {
        named["id"]: written
        for block, named in zip(blocks, content, strict=True)
        if named["type"] == "tool-call"
        and (written := redactor.exact_arguments(block["id"], block["arguments"])) is not None
    }


class ModelCall:
    """One model call: the `request` as it is sent, and its `request/header`."""

    __slots__ = ("_context", "_logged", "_purpose", "request")

    def __init__(self, context: TurnContext, request: LlmRequest, purpose: str | None) -> None:
        self.request = request
        self._logged = False
        self._context = context
        self._purpose = purpose

    def log_header(self) -> None:
        """Append the header, unless it stands in the log."""
        if self._logged:
            return
        session, options = self._context.session, self._context.options
        header = self._context.composer.header(self.request, provider=options.provider, last=session.last_request)
        session.append("request/header", header if self._purpose is None else {**header, "purpose": self._purpose})
        self._logged = True


async def prepare_call(
    context: TurnContext,
    *,
    turn: int,
    step: int,
    messages: list[Message] | None = None,
    purpose: str | None = None,
) -> ModelCall:
    """The request as it will be sent; its header is not logged yet.

    `messages` in place of the history; `purpose`: what the call is for, when it is no answer to anybody.
    """
    session, options, composer = context.session, context.options, context.composer

    def log_retry(notice: RetryNotice) -> None:
        call.log_header()
        session.append(
            "llm/retry",
            {
                "turn": turn,
                "step": step,
                "attempt": notice.attempt,
                "code": notice.code,
                "delayMs": notice.delay_ms,
            },
        )

    sections: Sections = await context.through("system-prompt/assemble", options.system_prompt)
    asked: LlmRequest = await context.through(
        "agent/request",
        LlmRequest(
            model=options.model,
            messages=await session.messages() if messages is None else messages,
            signal=context.signal,
            session_id=session.id,
            turn=turn,
            step=step,
            system=composer.system(sections),
            tools=context.tools.schemas(session.id),
            on_retry=log_retry,
            provider=options.provider,
            effort=options.effort,
            attachment=session.attachment,
        ),
    )
    sent = composer.normalise(asked.messages, reasoning=options.reasoning, merge_users=options.merge_users)
    call = ModelCall(context, asked if sent is asked.messages else replace(asked, messages=sent), purpose)
    return call


async def pull(context: TurnContext, call: ModelCall, ids: CallIds, redactor: ChunkRedactor) -> StepResult:
    """Stream the answer into the log, behind the header. Ends early, with what came until then, when the signal aborts.

    What is logged is what is assembled: the message of a recording comes from its chunks.
    """
    session, hooks, signal = context.session, context.hooks, context.signal
    assembler = BlockAssembler()
    turn, step = call.request.turn, call.request.step
    if context.wrapped("llm/stream") or context.wrapped("agent/request"):
        # a replay answers by what it says; and what a layer has put there may be nothing that can be logged
        call.log_header()
    # the seam types an iterator and promises a generator, which is what can be closed
    stream = cast("AsyncGenerator[StreamChunk]", context.llm.stream(call.request))
    received = 0

    def log(chunks: list[StreamChunk]) -> None:
        for chunk in chunks:
            session.append("assistant/chunk", {"turn": turn, "step": step, "chunk": chunk})
            assembler.add(chunk)

    # nobody else waits for it: it is worked out when the request is on its way
    header = get_running_loop().call_soon(call.log_header)
    try:
        async with aclosing(stream):
            async for raw in stream:
                if context.agent.congested() and hooks.listening("agent/flow"):
                    await hooks.parallel("agent/flow", context.agent, signal, agent=session.id)
                if signal.aborted:
                    break
                if session.failure:
                    raise session.failure
                call.log_header()
                log(redactor.feed(ids.in_chunk(raw)))
                received += 1
                if received % _CHUNKS_PER_CHECKPOINT == 0:
                    await checkpoint()
    finally:
        header.cancel()
        call.log_header()
        log(redactor.finish())
    return StepResult(assembler.blocks(), assembler.usage, assembler.finish)
