"""A client for the real console script: one child process, two pipes, every byte kept.

Enter `agent` in the body of a test. What is checked when it is left: the exit code, that stderr holds no traceback,
that every line of stdout is a frame that the official referee accepts, and that no process of this home is left.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from acp_bridge.testing.conversation import Conversation
from acp_bridge.testing.editor import Entry
from tests.support.official import agent_command, referee
from tests.support.processes import all_ended, ended, is_alive

Frame = dict[str, Any]
Permission = str | Callable[[Frame], Frame | None]
"""How permissions are answered: the kind of an option, `cancelled`, `never`, or a function from frame to result."""

LIMIT = 60.0
KEY = "sk-0123456789-test-key"
# what a program needs to start at all, and what measures it
_PASSED = ("PATH", "LANG", "LC_ALL")


def script(name: str, *argv: str) -> tuple[str, ...]:
    """The command that runs a script of this folder; its folder is not importable for it."""
    return (sys.executable, "-P", str(Path(__file__).with_name(name)), *argv)


@dataclass
class AgentHome:
    """The directories and the environment of the agents of one test; nothing of the user's own is in it."""

    root: Path
    env: dict[str, str]

    @property
    def cwd(self) -> str:
        return str(self.root / "work")

    @property
    def config(self) -> Path:
        return self.root / "config" / "dsh-acp-agent" / "config.toml"

    @property
    def sessions(self) -> Path:
        return self.root / "state" / "dsh-acp-agent" / "sessions"

    def touch(self, name: str) -> None:
        """Make a file in the working directory: what a command waits for."""
        Path(self.cwd, name).touch()

    def read(self, path: str | Path) -> str:
        """The text of a file; a relative path is below the working directory."""
        return Path(self.cwd, path).read_text(encoding="utf-8")

    def write_config(self, text: str) -> Path:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text, encoding="utf-8")
        return self.config

    def session_log(self, session_id: str) -> list[Frame]:
        """The records of a session's log, header first."""
        (path,) = self.sessions.rglob(f"{session_id}.jsonl")
        return [json.loads(line) for line in path.read_bytes().splitlines()]

    def events(self, session_id: str, kind: str) -> list[Frame]:
        """The data of a log's events of one type."""
        return [record["data"] for record in self.session_log(session_id)[1:] if record["type"] == kind]

    def written(self) -> Iterator[tuple[Path, bytes]]:
        """Every file below the home, with its bytes."""
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                yield path, path.read_bytes()

    def processes(self) -> list[int]:
        """Living processes that run with this home."""
        marker = os.fsencode(f"HOME={self.root}/home")
        found: list[int] = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                environ = Path("/proc", name, "environ").read_bytes()
            except OSError:
                continue
            if marker in environ.split(b"\0") and is_alive(int(name)):
                found.append(int(name))
        return found


def agent_home(root: Path, *, base_url: str | None = None, key: str | None = KEY, **env: str) -> AgentHome:
    """Fresh directories; with `base_url` DeepSeek is played by the model server there."""
    for name in ("home", "work", "config", "state", "tmp"):
        (root / name).mkdir(mode=0o700, exist_ok=True)
    given = {name: os.environ[name] for name in _PASSED if name in os.environ}
    given |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    given |= {"HOME": str(root / "home"), "TMPDIR": str(root / "tmp"), "DSH_LOG_LEVEL": "DEBUG"}
    given |= {f"XDG_{name}_HOME": str(root / name.lower()) for name in ("CONFIG", "STATE", "CACHE", "DATA")}
    if base_url is not None:
        given["DEEPSEEK_BASE_URL"] = base_url
    if key is not None:
        given["DEEPSEEK_API_KEY"] = key
    return AgentHome(root, given | env)


@dataclass
class AgentProcess:
    """The process and the client's side of its wire."""

    home: AgentHome
    popen: subprocess.Popen[bytes]
    to_agent: int
    from_agent: int
    permission: Permission
    stderr_path: Path
    entries: list[Entry] = field(default_factory=list)
    raw_in: bytearray = field(default_factory=bytearray)
    raw_out: bytearray = field(default_factory=bytearray)
    broken: list[str] = field(default_factory=list)
    killed: bool = False
    at_eof: bool = False
    _ids: int = 1000
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _reading: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def frames(self) -> list[Frame]:
        """What the agent has sent so far."""
        return [entry.frame for entry in self.entries if entry.sender == "agent"]

    @property
    def stderr(self) -> str:
        return self.stderr_path.read_text(encoding="utf-8", errors="replace")

    # sending

    async def send_raw(self, data: bytes) -> None:
        """Bytes as they are. A write into a closed pipe ends silently: the frames will tell."""
        self.raw_in += data if len(data) < 1 << 20 else data[:100]
        rest = memoryview(data)
        with anyio.fail_after(LIMIT):
            while rest:
                try:
                    rest = rest[os.write(self.to_agent, rest) :]
                except BlockingIOError:
                    await anyio.wait_writable(self.to_agent)
                except BrokenPipeError:
                    return

    async def send_line(self, line: bytes) -> None:
        """One line, newline added; recorded as a frame when it is one."""
        try:
            loaded = json.loads(line)
        except (ValueError, RecursionError):
            loaded = None
        if isinstance(loaded, dict):
            self.entries.append(Entry("client", loaded))
        await self.send_raw(line + b"\n")

    async def send(self, frame: Frame) -> None:
        await self.send_line(json.dumps({"jsonrpc": "2.0", **frame}).encode())

    async def request(self, method: str, **params: Any) -> int:
        """Send a request; returns its id."""
        self._ids += 1
        await self.send({"id": self._ids, "method": method, "params": params})
        return self._ids

    async def notify(self, method: str, **params: Any) -> None:
        await self.send({"method": method, "params": params})

    async def fill_stdin(self) -> None:
        """Write a beginning of a line and return when the agent has read it: it is up, and waits for the rest."""
        size = fcntl.fcntl(self.to_agent, fcntl.F_SETPIPE_SZ, 4096)
        await self.send_raw(b" " * size)
        with anyio.fail_after(LIMIT):
            await anyio.wait_writable(self.to_agent)

    # reading

    async def until(self, wanted: Callable[[Frame], bool], *, since: int = 0) -> Frame:
        """The first frame of the agent, from entry `since` on, that is `wanted`."""
        scanned = since
        with anyio.fail_after(LIMIT):
            while True:
                while scanned < len(self.entries):
                    entry = self.entries[scanned]
                    scanned += 1
                    if entry.sender == "agent" and wanted(entry.frame):
                        return entry.frame
                assert not self.at_eof, f"the agent ended before the frame came; stderr:\n{self.stderr[-2000:]}"
                await self._changed.wait()

    async def answer(self, request_id: Any, *, since: int = 0) -> Frame:
        """The response of that id, whatever it says."""
        return await self.until(
            lambda frame: "method" not in frame and "id" in frame and _same(frame["id"], request_id), since=since
        )

    async def call(self, method: str, **params: Any) -> Frame:
        """Send a request, await its result."""
        frame = await self.answer(await self.request(method, **params))
        assert "result" in frame, frame
        return frame["result"]

    async def error(self, method: str, **params: Any) -> Frame:
        """Send a request, await its error."""
        frame = await self.answer(await self.request(method, **params))
        assert "error" in frame, frame
        return frame["error"]

    async def update(self, kind: str, *, since: int = 0) -> Frame:
        """The first `session/update` of a kind."""
        frame = await self.until(
            lambda frame: (update := update_in(frame)) is not None and update["sessionUpdate"] == kind, since=since
        )
        return frame["params"]["update"]

    async def asked(self, *, since: int = 0) -> Frame:
        """The first `session/request_permission`."""
        return await self.until(lambda frame: frame.get("method") == "session/request_permission", since=since)

    def updates(self, *kinds: str, since: int = 0) -> list[Frame]:
        """The updates so far, of these kinds (none named: all)."""
        found = [update_in(entry.frame) for entry in self.entries[since:] if entry.sender == "agent"]
        return [each for each in found if each and (not kinds or each["sessionUpdate"] in kinds)]

    def text(self, *, since: int = 0, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.updates(kind, since=since))

    # a session

    async def initialize(self, *, terminal: bool = False, **capabilities: Any) -> Frame:
        if terminal:
            capabilities["_meta"] = {"terminal_output": True}
        return await self.call("initialize", protocolVersion=1, clientCapabilities=capabilities)

    async def new_session(self, **params: Any) -> str:
        result = await self.call("session/new", **{"cwd": self.home.cwd, "mcpServers": [], **params})
        return result["sessionId"]

    async def load(self, session_id: str) -> Frame:
        return await self.call("session/load", sessionId=session_id, cwd=self.home.cwd, mcpServers=[])

    async def send_prompt(self, session_id: str, text: str = "hello") -> int:
        return await self.request("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": text}])

    async def prompt(self, session_id: str, text: str = "hello") -> str:
        """Returns the stop reason."""
        frame = await self.answer(await self.send_prompt(session_id, text))
        assert "result" in frame, frame
        return frame["result"]["stopReason"]

    # the end

    def close_stdin(self) -> None:
        if self.to_agent >= 0:
            os.close(self.to_agent)
            self.to_agent = -1

    async def stop_reading(self) -> None:
        """From now on what the agent writes stays in the pipe."""
        self._reading.cancel()
        with anyio.fail_after(LIMIT):
            while not self.at_eof:
                await self._changed.wait()

    async def close_stdout(self) -> None:
        """Nobody can read any more."""
        await self.stop_reading()
        os.close(self.from_agent)
        self.from_agent = -1

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    async def kill(self) -> None:
        """SIGKILL, and everything that was on its way is read."""
        self.killed = True
        self.popen.kill()
        await self.exited()

    async def exited(self) -> int:
        """The exit code, once the process has ended and its output was read to the end."""
        with anyio.fail_after(LIMIT):
            await ended(self.pid)
            while not self.at_eof:
                await self._changed.wait()
        return self.popen.wait()

    async def read_output(self) -> None:
        """Runs beside the test until the agent's end."""
        with self._reading:
            await self._read_lines()
        self.at_eof = True
        self._note()

    async def _read_lines(self) -> None:
        rest = b""
        while True:
            await anyio.wait_readable(self.from_agent)
            piece = os.read(self.from_agent, 1 << 18)
            if not piece:
                break
            self.raw_out += piece
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                await self._take(line)
            self._note()
        if rest and not self.killed:
            self.broken.append(f"stdout ends within a line: {rest[:200]!r}")

    async def _take(self, line: bytes) -> None:
        try:
            frame = json.loads(line.decode("utf-8"))
        except ValueError:
            frame = None
        if not isinstance(frame, dict):
            self.broken.append(f"no JSON object on stdout: {line[:200]!r}")
            return
        self.entries.append(Entry("agent", frame))
        if frame.get("method") == "session/request_permission" and (result := self._permit(frame)) is not None:
            await self.send({"id": frame["id"], "result": result})

    def _permit(self, frame: Frame) -> Frame | None:
        if callable(self.permission):
            return self.permission(frame)
        if self.permission == "never":
            return None
        if self.permission == "cancelled":
            return {"outcome": {"outcome": "cancelled"}}
        return selected(frame, self.permission)

    def _note(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


def selected(frame: Frame, kind: str) -> Frame:
    """The answer to a permission request that picks the option of `kind`."""
    option = next(option["optionId"] for option in frame["params"]["options"] if option["kind"] == kind)
    return {"outcome": {"outcome": "selected", "optionId": option}}


def update_in(frame: Frame) -> Frame | None:
    """The update that a frame carries."""
    return frame["params"]["update"] if frame.get("method") == "session/update" else None


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


def _spawn(
    home: AgentHome, command: list[str], env: Mapping[str, str], permission: Permission, stdin: int | None
) -> AgentProcess:
    stderr_path = home.root / f"stderr-{len(list(home.root.glob('stderr-*')))}"
    child_in, to_agent = (stdin, -1) if stdin is not None else os.pipe()
    from_agent, child_out = os.pipe()
    with stderr_path.open("wb") as stderr:
        popen = subprocess.Popen(
            command, cwd=home.cwd, env=home.env | dict(env), stdin=child_in, stdout=child_out, stderr=stderr
        )
    os.close(child_out)
    if stdin is None:
        os.close(child_in)
        os.set_blocking(to_agent, False)
    return AgentProcess(home, popen, to_agent, from_agent, permission, stderr_path)


@asynccontextmanager
async def agent(
    home: AgentHome,
    *argv: str,
    command: Iterable[str] | None = None,
    env: Mapping[str, str] | None = None,
    permission: Permission = "allow_once",
    code: int | None = 0,
    stdin: int | None = None,
    conversation: bool = True,
) -> AsyncIterator[AgentProcess]:
    """Start the console script (or `command`) and talk to it; whatever happens, it is dead afterwards.

    `code` None: any exit code. `stdin`: the child's standard input instead of a pipe. `conversation` False: the rules
    between frames are not checked (a client that breaks them itself).
    """
    process = _spawn(home, [*(command or agent_command()), *argv], env or {}, permission, stdin)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(process.read_output)
            yield process
            process.close_stdin()
            exit_code = await process.exited()
            tasks.cancel_scope.cancel()
    except BaseException as error:
        # the test failed, not its task group: show that failure
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        error.add_note(f"agent stderr: {process.stderr[-4000:]}")
        raise error from None
    finally:
        process.close_stdin()
        if process.popen.poll() is None:
            process.popen.kill()
            process.popen.wait()
        if process.from_agent >= 0:
            os.close(process.from_agent)
        for pid in home.processes() if sys.exc_info()[0] is not None else ():
            os.kill(pid, signal.SIGKILL)
    await _judge(process, exit_code, code, conversation=conversation)


async def _judge(process: AgentProcess, exit_code: int, code: int | None, *, conversation: bool) -> None:
    assert process.broken == []
    assert "Traceback" not in process.stderr, process.stderr
    assert referee().violations(process.entries) == []
    if conversation and not process.killed:
        assert Conversation().violations(process.entries) == []
    if process.killed:
        assert exit_code == -signal.SIGKILL
    elif code is not None:
        assert exit_code == code, process.stderr
    with anyio.fail_after(LIMIT):
        await all_ended(process.home.processes())
