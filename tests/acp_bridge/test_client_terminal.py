"""A command in a terminal of the client: whatever ends it, the terminal is given back once."""

import asyncio
import json

import anyio
import anyio.lowlevel
import pytest

from acp_bridge.client_terminal import ANSWER_SECONDS, OUTPUT_BYTES, ClientTerminal
from acp_bridge.rpc.messages import ResponseMessage
from acp_bridge.rpc.outgoing import OutgoingRequests
from agent_loop.abort import AbortController
from bash_exec.errors import AlreadyAborted, ExecutorError
from bash_exec.seam import CommandSpec
from bash_exec.secrets import SecretRegistry

NEVER = object()
SPEC = CommandSpec("make test", "/there", "s1", 5000)
GOOD = {
    "terminal/create": {"terminalId": "t1"},
    "terminal/wait_for_exit": {"exitCode": 0},
    "terminal/output": {"output": "fine\r\n", "truncated": False},
    "terminal/kill": {},
    "terminal/release": None,
}
CUT = ["terminal/create", "terminal/wait_for_exit", "$/cancel_request", "terminal/kill", "terminal/output"]


class Timer:
    def __init__(self, seconds, callback):
        self.seconds = seconds
        self.callback = callback
        self.cancelled = False

    def cancel(self):
        self.cancelled = True


class Client:
    """A client on the real table of requests. `answers`: method → result, `NEVER`, or an error's message."""

    def __init__(self, **answers):
        self.answers = {**GOOD, **{f"terminal/{name}": answer for name, answer in answers.items()}}
        self.outgoing = OutgoingRequests(self.queue)
        self.frames = []
        self.events = []
        self.timers = []
        self.asked = {}
        self.printed = b""
        self.secrets = SecretRegistry()
        self.terminal = ClientTerminal(
            self,
            session_id="s1",
            environment={"TERM": "dumb"},
            show=lambda terminal_id: self.events.append(f"shown {terminal_id}"),
            call_later=self.call_later,
            secrets=self.secrets,
        )

    def queue(self, frame):
        frame = json.loads(frame)
        method = frame["method"]
        self.frames.append(frame)
        self.events.append(method)
        answer = self.answers.get(method)
        self.asked.setdefault(method, anyio.Event()).set()
        if answer is not NEVER and "id" in frame:
            asyncio.get_running_loop().call_soon(self.settle, frame["id"], answer)

    def settle(self, request_id, answer):
        error = {"code": -32603, "message": answer} if isinstance(answer, str) else None
        self.outgoing.settle(ResponseMessage(request_id, None if error else answer, error))

    async def request(self, method, params, *, signal=None, on_late=None):
        return await self.outgoing.request(method, params=params, signal=signal, on_late=on_late)

    def post(self, method, params):
        self.outgoing.post(method, params)

    def call_later(self, seconds, callback):
        self.timers.append(Timer(seconds, callback))
        return self.timers[-1]

    def pass_time(self, seconds):
        for timer in tuple(self.timers):
            if timer.seconds <= seconds and not timer.cancelled:
                timer.callback()

    async def until(self, method):
        await self.asked.setdefault(method, anyio.Event()).wait()

    def output(self, data):
        self.printed += data

    async def run(self, **options):
        with anyio.fail_after(10):
            return await self.terminal.run(SPEC, on_output=self.output, **options)

    def released(self):
        return [frame["params"] for frame in self.frames if frame["method"] == "terminal/release"]


async def during(client, method, act, **options):
    """Run; call `act` once the client was asked for `method`. Returns the result, or the error."""
    outcomes = []

    async def run():
        try:
            outcomes.append(await client.run(**options))
        except ExecutorError as error:
            outcomes.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with anyio.fail_after(10):
            await client.until(method)
        act()
    return outcomes[0]


ONCE = [{"sessionId": "s1", "terminalId": "t1"}]


async def test_a_command_is_created_shown_awaited_read_and_let_go():
    client = Client()
    result = await client.run()
    assert client.events == [
        "terminal/create",
        "shown t1",
        "terminal/wait_for_exit",
        "terminal/output",
        "terminal/release",
    ]
    assert client.frames[0]["params"] == {
        "sessionId": "s1",
        "command": "bash",
        "args": ["-c", "make test"],
        "env": [{"name": "TERM", "value": "dumb"}],
        "cwd": "/there",
        "outputByteLimit": OUTPUT_BYTES,
    }
    assert (result.exit_code, result.signal, result.timed_out, result.aborted) == (0, None, False, False)
    assert (result.stdout.text, result.stderr.text, client.printed) == ("fine\n", "", b"fine\r\n")
    assert client.released() == ONCE
    assert all(timer.cancelled for timer in client.timers)


async def test_nobody_needs_to_listen():
    client = Client(wait_for_exit={"exitCode": 3})
    result = await client.terminal.run(SPEC)
    assert result.exit_code == 3


@pytest.mark.parametrize(
    ("told", "exit_code", "signal"),
    [
        ({"exitCode": None, "signal": "SIGSEGV"}, None, "SIGSEGV"),
        ({"exitCode": 139, "signal": "SIGSEGV"}, None, "SIGSEGV"),
        ({"exitCode": 2, "signal": None}, 2, None),
        ({"exitCode": 2, "signal": ""}, 2, None),
    ],
)
async def test_an_exit_is_a_code_or_a_signal(told, exit_code, signal):
    result = await Client(wait_for_exit=told).run()
    assert (result.exit_code, result.signal) == (exit_code, signal)


async def test_a_timeout_kills_then_reads_then_lets_go():
    client = Client(wait_for_exit=NEVER, output={"output": "half\nwhole\n", "truncated": True, "exitStatus": None})
    result = await during(client, "terminal/wait_for_exit", lambda: client.pass_time(5))
    assert [event for event in client.events if "shown" not in event] == [*CUT, "terminal/release"]
    assert (result.timed_out, result.aborted, result.signal, result.exit_code) == (True, False, "SIGKILL", None)
    note = f"[the beginning of the output is missing: the editor keeps its last {OUTPUT_BYTES} bytes]\n"
    assert result.stdout.text == f"{note}whole\n"
    assert client.released() == ONCE


async def test_an_abort_kills_and_what_the_client_says_of_the_end_counts():
    abort = AbortController()
    status = {"output": "", "truncated": False, "exitStatus": {"exitCode": 0}}
    client = Client(wait_for_exit=NEVER, output=status)
    result = await during(client, "terminal/wait_for_exit", lambda: abort.abort("cancel"), abort=abort)
    assert (result.aborted, result.timed_out, result.exit_code, result.signal) == (True, False, 0, None)
    assert [event for event in client.events if "shown" not in event] == [*CUT, "terminal/release"]


async def test_a_client_that_does_not_answer_holds_nobody_for_long():
    abort = AbortController()
    client = Client(wait_for_exit=NEVER, kill=NEVER, output=NEVER)
    outcomes = []

    async def run():
        outcomes.append(await client.run(abort=abort))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with anyio.fail_after(10):
            await client.until("terminal/wait_for_exit")
            abort.abort("cancel")
            await client.until("terminal/kill")
            client.pass_time(ANSWER_SECONDS)
            await client.until("terminal/output")
            client.pass_time(ANSWER_SECONDS)
    (result,) = outcomes
    assert (result.aborted, result.signal) == (True, "SIGKILL")
    assert result.stdout.text == "[the editor did not give the output of the command]\n"
    assert client.released() == ONCE


async def test_a_terminal_that_comes_after_the_cancel_is_let_go_when_it_comes():
    abort = AbortController()
    client = Client(create=NEVER)
    error = await during(client, "terminal/create", lambda: abort.abort("cancel"), abort=abort)
    assert isinstance(error, AlreadyAborted)
    assert client.events == ["terminal/create", "$/cancel_request"]
    client.settle(1, {"terminalId": "late"})
    client.settle(1, {"terminalId": "late"})
    assert client.released() == [{"sessionId": "s1", "terminalId": "late"}]


async def test_an_answer_without_an_id_leaves_nothing_to_let_go():
    abort = AbortController()
    client = Client(create=NEVER)
    await during(client, "terminal/create", lambda: abort.abort("cancel"), abort=abort)
    client.settle(1, {"terminalId": 7})
    assert client.released() == []


async def test_a_call_that_was_aborted_before_asks_for_nothing():
    abort = AbortController()
    abort.abort("cancel")
    client = Client()
    with pytest.raises(AlreadyAborted, match="aborted before its command started"):
        await client.run(abort=abort)
    assert client.events == []


async def test_a_client_that_is_slow_to_start_the_command_is_named():
    client = Client(create=NEVER)
    error = await during(client, "terminal/create", lambda: client.pass_time(5))
    assert str(error) == "the editor did not start the command within 5000 ms"


async def test_a_client_that_refuses_is_quoted():
    with pytest.raises(ExecutorError, match="could not start the command: no room"):
        await Client(create="no room").run()


async def test_a_terminal_without_an_id_is_an_error():
    client = Client(create={"terminalId": ""})
    with pytest.raises(ExecutorError, match="did not say which terminal"):
        await client.run()
    assert client.released() == []


async def test_an_exit_that_only_the_output_tells_is_believed_and_the_command_does_not_go_on():
    client = Client(wait_for_exit="lost", output={"output": "x", "truncated": False, "exitStatus": {"exitCode": 4}})
    result = await client.run()
    assert (result.exit_code, result.stdout.text) == (4, "x")
    assert "terminal/kill" in client.events
    assert client.released() == ONCE


async def test_an_end_that_nobody_can_tell_is_an_error_with_the_output():
    client = Client(wait_for_exit="lost")
    with pytest.raises(ExecutorError) as caught:
        await client.run()
    assert str(caught.value) == "the editor could not say how the command ended (lost). Its output:\nfine\r\n"
    assert client.released() == ONCE


@pytest.mark.parametrize("told", [None, {}, {"exitCode": -1}, {"exitCode": None, "signal": None}])
async def test_an_exit_without_code_and_signal_is_no_success(told):
    client = Client(wait_for_exit=told)
    with pytest.raises(ExecutorError, match="neither an exit code nor a signal"):
        await client.run()
    assert client.released() == ONCE
    assert "terminal/kill" not in client.events


async def test_output_that_does_not_come_before_the_timeout_is_said_to_be_missing():
    client = Client(output=NEVER)
    result = await during(client, "terminal/output", lambda: client.pass_time(5))
    assert (result.exit_code, result.timed_out) == (0, False)
    assert result.stdout.text == "[the editor did not give the output of the command]\n"
    assert client.released() == ONCE


async def test_output_above_the_limit_is_cut_here():
    client = Client(output={"output": "x" * (OUTPUT_BYTES + 10), "truncated": False})
    result = await client.run()
    assert (result.stdout.truncated, result.stdout.dropped_bytes) == (True, 10)


async def test_secrets_do_not_come_back():
    client = Client(output={"output": "key=hunter22hunter22\n", "truncated": False})
    client.secrets.add("KEY", "hunter22hunter22")
    result = await client.run()
    assert (result.stdout.text, client.printed) == ("key=[redacted:KEY]\n", b"key=[redacted:KEY]\n")


async def test_the_end_of_the_connection_lets_the_terminal_go():
    client = Client(wait_for_exit=NEVER)
    error = await during(client, "terminal/wait_for_exit", client.outgoing.close)
    assert "the client closed the connection" in str(error)
    assert client.released() == ONCE


@pytest.mark.parametrize("method", ["terminal/wait_for_exit", "terminal/kill"])
async def test_a_cancelled_task_lets_the_terminal_go(method):
    abort = AbortController()
    client = Client(wait_for_exit=NEVER, kill=NEVER)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: client.run(abort=abort))
        with anyio.fail_after(10):
            await client.until("terminal/wait_for_exit")
            if method == "terminal/kill":
                abort.abort("cancel")
            await client.until(method)
        tasks.cancel_scope.cancel()
    assert client.events[-1] == "terminal/release"
    assert client.released() == ONCE
    assert all(timer.cancelled for timer in client.timers if timer.seconds == 5)


async def test_a_cancelled_task_lets_a_terminal_go_that_comes_later():
    client = Client(create=NEVER)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.run)
        with anyio.fail_after(10):
            await client.until("terminal/create")
        tasks.cancel_scope.cancel()
    client.settle(1, {"terminalId": "late"})
    assert client.released() == [{"sessionId": "s1", "terminalId": "late"}]
