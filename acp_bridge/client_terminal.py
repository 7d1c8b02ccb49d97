"""A foreground command in a terminal of the client (`terminal/*`, surface.md §1.3), where the settings want that.

May not know: sessions, cards, who asked. Invariant: every terminal that the client has made is released exactly once,
whatever ends the command — also one whose id comes after nobody waits for it any more — and it is shown before it is
released; nothing is polled; what comes back is redacted before anybody sees it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from acp_bridge.rpc.errors import ConnectionClosed, RpcError
from acp_bridge.schema import SchemaProblem, TerminalCreated, TerminalExit, TerminalText, parse
from acp_bridge.terminal_output import CallLater
from acp_bridge.wire import Wire
from agent_loop.abort import AbortController, AbortSignal
from bash_exec.capture import HEAD, TAIL, OutputWindow
from bash_exec.errors import AlreadyAborted, ExecutorError
from bash_exec.seam import Abort, CommandResult, CommandSpec, OutputListener, StreamCapture
from bash_exec.secrets import SecretRegistry

OUTPUT_BYTES: Final = HEAD + TAIL
ANSWER_SECONDS: Final = 2.0
"""How long a command that was told to end waits for the client to kill its terminal, and then for the output."""
_TIMEOUT: Final = "timeout"
_ABORT: Final = "abort"
_CUT: Final = f"[the beginning of the output is missing: the editor keeps its last {OUTPUT_BYTES} bytes]\n"


@dataclass(frozen=True, slots=True)
class _End:
    """How the wait for the exit ended: with the client's word, with a problem of its, or cut short by us."""

    status: TerminalExit | None = None
    problem: str = ""
    cut: str | None = None


def _status(answer: object) -> TerminalExit | None:
    """The client's word on the exit; None when it has none of both."""
    try:
        status = parse(TerminalExit, answer)
    except SchemaProblem:
        return None
    return status if status.signal or status.exit_code is not None else None


class ClientTerminal:
    """Runs the commands of one call, with `environment` beside what the client's terminals have anyway.

    `show(terminal_id)` puts the terminal into the call's card.
    """

    def __init__(
        self,
        wire: Wire,
        *,
        session_id: str,
        environment: Mapping[str, str],
        show: Callable[[str], None],
        call_later: CallLater,
        secrets: SecretRegistry,
    ) -> None:
        self._wire = wire
        self._session_id = session_id
        self._environment = environment
        self._show = show
        self._call_later = call_later
        self._secrets = secrets

    async def run(
        self, spec: CommandSpec, *, abort: Abort | None = None, on_output: OutputListener | None = None
    ) -> CommandResult:
        """As `BashExecutor.run`; `on_output` gets everything at the end, since the client's terminal shows it live.

        A cut command is killed, its output read, its terminal released, in this order. Raises `ExecutorError` when the
        client makes no terminal, and when it cannot say how the command ended.
        """
        stop = AbortController()
        forget = abort.on_abort(lambda: stop.abort(_ABORT)) if abort is not None else None
        timer = self._call_later(spec.timeout_ms / 1000, lambda: stop.abort(_TIMEOUT))
        try:
            terminal_id = await self._create(spec, stop)
            try:
                self._show(terminal_id)
                return await self._finish(terminal_id, spec, stop, on_output)
            finally:
                self._release(terminal_id)
        finally:
            timer.cancel()
            if forget is not None:
                forget()

    async def _create(self, spec: CommandSpec, stop: AbortController) -> str:
        params = {
            "sessionId": self._session_id,
            "command": "bash",
            "args": ["-c", spec.command],
            "env": [{"name": name, "value": value} for name, value in self._environment.items()],
            "cwd": spec.cwd,
            "outputByteLimit": OUTPUT_BYTES,
        }
        try:
            made = await self._wire.request("terminal/create", params, signal=stop, on_late=self._release_late)
        except (RpcError, ConnectionClosed) as error:
            if stop.reason == _TIMEOUT:
                raise ExecutorError(f"the editor did not start the command within {spec.timeout_ms} ms") from error
            if stop.aborted:
                raise AlreadyAborted("the call was aborted before its command started") from error
            raise ExecutorError(f"the editor could not start the command: {error}") from error
        try:
            return parse(TerminalCreated, made).terminal_id
        except SchemaProblem as error:
            raise ExecutorError(f"the editor did not say which terminal it has started: {error}") from error

    async def _finish(
        self, terminal_id: str, spec: CommandSpec, stop: AbortController, on_output: OutputListener | None
    ) -> CommandResult:
        end = await self._wait(terminal_id, stop)
        if end.cut or end.problem:
            # told to end, or nobody can say whether it has: it must not go on behind our back
            await self._ask_briefly("terminal/kill", terminal_id)
            answer = await self._ask_briefly("terminal/output", terminal_id)
        else:
            answer = await self._ask("terminal/output", terminal_id, stop)
        text, status = self._read(answer)
        if on_output is not None:
            on_output(text.encode())
        status = end.status or status
        if status is None and end.cut is None:
            problem = end.problem or "it told neither an exit code nor a signal"
            raise ExecutorError(f"the editor could not say how the command ended ({problem}). Its output:\n{text}")
        # without the client's word: it was killed on ours
        signal = status.signal if status else "SIGKILL"
        window = OutputWindow()
        window.feed(text.encode())
        return CommandResult(
            exit_code=status.exit_code if status and not signal else None,
            signal=signal or None,
            timed_out=end.cut == _TIMEOUT,
            aborted=end.cut == _ABORT,
            timeout_ms=spec.timeout_ms,
            stdout=window.capture(),
            stderr=StreamCapture(""),
        )

    async def _wait(self, terminal_id: str, stop: AbortController) -> _End:
        try:
            answer = await self._wire.request("terminal/wait_for_exit", self._params(terminal_id), signal=stop)
        except (RpcError, ConnectionClosed) as error:
            return _End(problem=str(error), cut=stop.reason)
        return _End(_status(answer))

    async def _ask(self, method: str, terminal_id: str, signal: AbortSignal) -> dict[str, Any]:
        """The client's answer; `{}` when there is none."""
        try:
            return await self._wire.request(method, self._params(terminal_id), signal=signal)
        except (RpcError, ConnectionClosed):
            return {}

    async def _ask_briefly(self, method: str, terminal_id: str) -> dict[str, Any]:
        limit = AbortController()
        timer = self._call_later(ANSWER_SECONDS, lambda: limit.abort("no answer"))
        try:
            return await self._ask(method, terminal_id, limit)
        finally:
            timer.cancel()

    def _read(self, answer: dict[str, Any]) -> tuple[str, TerminalExit | None]:
        """The output without secrets, and how the command has ended, if the client knows."""
        try:
            output = parse(TerminalText, answer)
        except SchemaProblem:
            return "[the editor did not give the output of the command]\n", None
        text = output.output
        if output.truncated:
            # the first line may begin in the middle of a secret, which nothing would recognise
            text = text.partition("\n")[2]
        text = self._secrets.redact(text)
        return (_CUT + text if output.truncated else text), _status(output.exit_status)

    def _release_late(self, made: dict[str, Any]) -> None:
        try:
            self._release(parse(TerminalCreated, made).terminal_id)
        except SchemaProblem:
            # it has no id, so there is nothing to give back
            return

    def _release(self, terminal_id: str) -> None:
        self._wire.post("terminal/release", self._params(terminal_id))

    def _params(self, terminal_id: str) -> dict[str, Any]:
        return {"sessionId": self._session_id, "terminalId": terminal_id}
