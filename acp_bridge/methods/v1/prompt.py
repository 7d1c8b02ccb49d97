"""`session/prompt` and `session/cancel` (acp.md §2, §5).

May not know: how a turn runs. Invariant: everything up to the message's place in the inbox happens before the first
await on a live session, so that prompts and cancels take effect in the order of their arrival.
"""

from typing import Any, NamedTuple

from acp_bridge.live_session import LiveSession
from acp_bridge.methods.v1.command_run import CommandRun
from acp_bridge.methods.v1.connection import Connection
from acp_bridge.rpc.call import Call
from acp_bridge.rpc.codes import INTERNAL_ERROR, INVALID_PARAMS
from acp_bridge.rpc.errors import RpcError
from acp_bridge.schema import PromptParams, SchemaProblem, SessionParams
from acp_bridge.translate.v1.prompts import Prompt, to_prompt
from acp_bridge.translate.v1.stops import Failed, Stopped
from agent_loop.commands.seam import AgentFacts, BackgroundFact, Command, CommandContext, CommandResult
from agent_loop.errors import HarnessError
from agent_loop.vocabulary import Block


def begin(connection: Connection, params: PromptParams, call: Call) -> bool:
    """Send a prompt for the model on its way, which is all that needs a task of the agent and none of its own.

    False when nothing was done: it is a command, or there is no such session, or not yet. Raises `RpcError`.
    """
    live = connection.bridge.present(params.session_id)
    if live is None:
        return False
    taken = _taken(connection, live, params)
    if connection.bridge.parts.commands.parse_line(_line(taken)):
        return False
    _send(connection, live, taken, call)
    return True


async def prompt(connection: Connection, params: PromptParams, call: Call) -> dict[str, Any] | None:
    """Run a command, or send what could not `begin` at once."""
    live = connection.bridge.present(params.session_id) or await connection.require(params.session_id)
    taken = _taken(connection, live, params)
    commands = connection.bridge.parts.commands
    if (parsed := commands.parse_line(_line(taken))) and (command := commands.get(parsed[0])):
        given = CommandInput(parsed[1], tuple(taken.blocks[1:]))
        with live.answering():
            try:
                return await _run_command(connection, live, command, _line(taken), given, call)
            except HarnessError as error:
                raise _refused(error) from error
    _send(connection, live, taken, call)
    return None


def cancel(connection: Connection, params: SessionParams) -> None:
    """Settles the running prompt and those received before; an unknown session is ignored."""
    if live := connection.bridge.present(params.session_id):
        live.agent.cancel("session/cancel")


def _taken(connection: Connection, live: LiveSession, params: PromptParams) -> Prompt:
    try:
        return to_prompt(params.prompt, images=connection.images, redact=live.agent.session.secrets.redact)
    except SchemaProblem as error:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {error}") from error


def _line(taken: Prompt) -> str:
    first = taken.blocks[0]
    return first["text"] if first["type"] == "text" else ""


def _send(connection: Connection, live: LiveSession, taken: Prompt, call: Call) -> None:
    """Answered when the turn that claims the message has ended."""
    connection.require_credential(live.agent.options.provider)
    try:
        waiting = live.enqueue(connection.bridge.parts.runtime.new_id(), taken.blocks)
    except HarnessError as error:
        raise _refused(error) from error

    def answer(ended: Stopped | Failed) -> None:
        if isinstance(ended, Stopped):
            call.answer(_result(ended, persisted=waiting.persisted))
        else:
            call.answer(connection.redacted(RpcError(INTERNAL_ERROR, ended.message, ended.data)))

    waiting.answer = answer
    for data in taken.attachments:
        live.agent.session.keep(data)
    call.on_cancel(lambda: live.cancel_prompt(waiting))


def _refused(error: HarnessError) -> RpcError:
    return RpcError(
        INTERNAL_ERROR, f"Internal error: {error.message}", {"reason": error.code.lower(), "details": error.message}
    )


def _result(ended: Stopped, *, persisted: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"stopReason": ended.reason}
    if not persisted:
        result["_meta"] = {"dsh": {"persistence": "failed"}}
    return result


class CommandInput(NamedTuple):
    """What stands behind a command's name: the rest of its line, and the prompt's other blocks."""

    argument: str
    blocks: tuple[Block, ...]


async def _run_command(
    connection: Connection, live: LiveSession, command: Command, line: str, given: CommandInput, call: Call
) -> dict[str, Any]:
    run = CommandRun(live, call, line=line, new_id=connection.bridge.parts.runtime.new_id())
    if command.needs_idle:
        connection.require_credential(live.agent.options.provider)
        await command.run(_context(connection, live, run, given), given.argument)
        # its turn was flushed; and the next one is shown behind this answer
        return _result(run.stopped, persisted=run.persisted)
    await _run_at_once(connection, live, command, run, given)
    return _result(run.stopped, persisted=await live.agent.session.flush())


async def run_line(connection: Connection, session_id: str, line: str) -> CommandResult | None:
    """Run a command that needs no turn for somebody beside the client, who is shown its answer too.

    None: no such session is open here, or no such command is there.
    """
    live = await connection.bridge.find(session_id)
    commands = connection.bridge.parts.commands
    if live is None or not (parsed := commands.parse_line(line)) or not (command := commands.get(parsed[0])):
        return None
    new_id = connection.bridge.parts.runtime.new_id
    with live.answering():
        run = CommandRun(live, Call(new_id(), line), line=line, new_id=new_id())
        result = await _run_at_once(connection, live, command, run, CommandInput(parsed[1], ()))
        await live.agent.session.flush()
        return result


async def _run_at_once(
    connection: Connection, live: LiveSession, command: Command, run: CommandRun, given: CommandInput
) -> CommandResult:
    run.begin()
    result = await command.run(_context(connection, live, run, given), given.argument)
    run.end(result)
    return result


def _context(connection: Connection, live: LiveSession, run: CommandRun, given: CommandInput) -> CommandContext:
    def rename(title: str) -> None:
        live.agent.session.append("session/title", {"title": title, "by": "user"})

    return CommandContext(_facts(connection, live), rename, run.compact, given.blocks)


def _facts(connection: Connection, live: LiveSession) -> AgentFacts:
    agent, parts = live.agent, connection.bridge.parts
    window, used = live.window(), agent.session.context_size
    running = (task for task in parts.executor.list(live.id) if task.status == "running")
    return AgentFacts(
        session_id=live.id,
        cwd=agent.cwd,
        provider=agent.options.provider,
        model=agent.options.model,
        mode=live.choice.mode,
        status=agent.status,
        turns=agent.session.last_turn,
        title=agent.session.title,
        usage=agent.session.last_usage,
        background=tuple(BackgroundFact(task.id, task.command) for task in running),
        thinking=live.offer.level(live.choice),
        context=None if window is None or used is None else (used, window),
        cost=live.offer.catalogue.cost(agent.session.spent),
    )
