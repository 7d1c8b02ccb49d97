"""The local page as a person has it: `dsh-acp-agent ui` as a process, and whoever owns a session behind a socket."""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import start_blocking_portal

from acp_bridge.owner.listening import OwnerSocket
from acp_bridge.owner.protocol import Answer, Request
from agent_loop.runtime import SystemRuntime
from agent_loop.session.codec import encode_event
from agent_loop.session.events import make_event
from agent_loop.session.file_lock import FileLock
from agent_loop.session.layout import lock_path
from tests.support.official import agent_command

LIMIT = 60.0


@dataclass
class Page:
    """`address` ends in the token and a slash."""

    address: str
    process: subprocess.Popen[str]

    @property
    def origin(self) -> str:
        return self.address.rstrip("/").rpartition("/")[0]

    def open(self, path: str = "", **request: Any) -> Any:
        """The response; an error status raises."""
        asked = urllib.request.Request(self.address + path, **request)  # noqa: S310 - our own server
        return urllib.request.urlopen(asked, timeout=LIMIT)  # noqa: S310 - our own server

    def execute(self, session_id: str, line: str) -> Any:
        """What a command line is answered."""
        headers = {"Content-Type": "application/json", "Origin": self.origin}
        body = json.dumps({"line": line}).encode()
        return json.load(self.open(f"execute/{session_id}", method="POST", data=body, headers=headers))

    def events(self, session_id: str) -> Iterator[tuple[str, Any]]:
        """What the page of a session is told, as it comes."""
        with self.open(f"events/{session_id}") as stream:
            while name := stream.readline():
                if name.startswith(b"event: "):
                    yield name[7:].decode().strip(), json.loads(stream.readline()[6:])


@contextmanager
def page(environment: Mapping[str, str], *argv: str) -> Iterator[Page]:
    """The command, until Ctrl-C: it says where the page is, and nothing else."""
    command = [*agent_command(), "ui", *argv]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    with subprocess.Popen(command, env=measured | dict(environment), **pipes) as process:
        assert process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], LIMIT)[0]
            line = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:[0-9]+/\S+/$", line)
            assert found, (line, process.stderr and process.stderr.read())
            yield Page(found[0], process)
        finally:
            process.send_signal(signal.SIGINT)
            said, problems = process.communicate(timeout=LIMIT)
    assert (process.returncode, problems) == (130, "")
    assert "\n" not in said.strip()


@contextmanager
def short_directory() -> Iterator[Path]:
    """A private directory whose name leaves room for that of a socket."""
    folder = Path(tempfile.mkdtemp(prefix="dsh-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


Execute = Callable[[Request], Awaitable[Answer]]


@asynccontextmanager
async def owner_socket(folder: Path, execute: Execute, **options: Any) -> Any:
    """The address of a socket behind which `execute` answers."""
    async with anyio.create_task_group() as tasks:
        socket = OwnerSocket([folder], execute, tasks=tasks, **{"runtime": SystemRuntime(), **options})
        yield socket.address()
        tasks.cancel_scope.cancel()


@contextmanager
def owned(log: Path, folder: Path, execute: Execute) -> Iterator[None]:
    """A process that has the session of `log` open: this one; `execute` runs in a thread of its own."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(owner_socket(folder, execute)) as address:
        lock = FileLock.take(lock_path(log))
        lock.tell(address)
        try:
            yield
        finally:
            lock.release()


def add_events(log: Path, *pairs: tuple[str, dict[str, Any]], time: int = 2000) -> None:
    """Write on, as the owner of a log does: all of it at once."""
    seq = len(log.read_bytes().splitlines()) - 1
    events = (make_event(kind, seq + at, time, data) for at, (kind, data) in enumerate(pairs))
    with log.open("ab") as file:
        file.write(b"".join(map(encode_event, events)))
        os.fsync(file.fileno())


def created(number: int, prompt: str, seconds: int, next_at: int) -> tuple[str, dict[str, Any]]:
    """The event of a new loop, whose id ends in `number`."""
    loop = {"id": loop_id(number), "prompt": prompt, "time_in_seconds": seconds, "next_at": next_at}
    return "loop/change", {"version": 1, "operation": "create", "loop": loop}


def deleted(number: int) -> tuple[str, dict[str, Any]]:
    return "loop/change", {"version": 1, "operation": "delete", "id": loop_id(number)}


def loop_id(number: int) -> str:
    return f"loop_00000000-0000-4000-8000-{number:012d}"
