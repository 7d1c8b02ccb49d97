"""How the broken agent runs a command: itself, shown as text or in a display terminal, or in the client's terminal.

May not know: permissions, the model. Standard library only. Invariant: no process of a command outlives it; each
terminal of the client is released once; each display terminal gets one exit.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

from acp_bridge.testing.broken_agent_card import Card
from acp_bridge.testing.broken_agent_session import shown_text
from acp_bridge.testing.broken_agent_wire import Cancel, Cancelled, table
from acp_bridge.testing.conformance.processes import descendants
from acp_bridge.testing.json_values import JsonObject

_KEPT = 16 << 10
"""Of a longer output the head and the tail of this many characters are kept."""
_PAUSE_SECONDS = 0.05
_GRACE_SECONDS = 0.3


class Output:
    """What a command printed, bounded."""

    def __init__(self, *, is_bounded: bool) -> None:
        self._is_bounded = is_bounded
        self.head = ""
        self._tail = ""
        self._left_out = False

    def add(self, text: str) -> None:
        """Take more."""
        room = _KEPT - len(self.head) if self._is_bounded else len(text)
        self.head += text[:room]
        tail = self._tail + text[max(room, 0) :]
        self._left_out = self._left_out or len(tail) > _KEPT
        self._tail = tail[-_KEPT:]

    def __str__(self) -> str:
        return self.head + ("\n[…]\n" if self._left_out else "") + self._tail


def run_local(card: Card, command: str) -> str:
    """Run `command` with bash and close the card; returns what it printed. Raises `Cancelled`."""
    session, cancel, faults = card.session, card.turn.cancel, card.session.faults
    if "prints-on-stdout" in faults:
        sys.stdout.write("running a tool\n")
        sys.stdout.flush()
    card.progress()
    cwd = os.getcwd() if "process-directory" in faults else session.cwd
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    family: set[int] = set()
    cancel.on_set(lambda: _end(process, family))
    output = Output(is_bounded="long-lines" not in faults)
    shown = 0.0
    for piece in _pieces(process, family):
        output.add(piece)
        if card.terminal is not None:
            for data in (piece, str(output)) if "repeats-terminal-output" in faults else (piece,):
                meta = {"terminal_output": {"terminal_id": card.terminal, "data": data}}
                update: JsonObject = {"sessionUpdate": "tool_call_update", "toolCallId": card.id, "_meta": meta}
                session.show(update)
            session.wire.room(cancel)
        elif time.monotonic() - shown > _PAUSE_SECONDS and len(output.head) < _KEPT:
            shown = time.monotonic()
            card.update(content=[shown_text(_last_line(output) if "content-deltas" in faults else str(output))])
    code = process.wait()
    status = {"exit_code": code, "signal": None} if code >= 0 else {"exit_code": None, "signal": str(-code)}
    content = None if card.terminal is None else card.content
    if "content-deltas" in faults:
        content = [shown_text(_last_line(output))]
    card.close(str(output), is_done=not code, content=content, ended=status)
    cancel.check()
    return f"{output}\n[exit code {code}]"


def _last_line(output: Output) -> str:
    return str(output).rstrip("\n").rpartition("\n")[2]


def _pieces(process: "subprocess.Popen[bytes]", family: set[int]) -> Any:
    """The text that the process prints; when it has ended, what it left behind is killed."""
    stdout: Any = process.stdout
    with stdout:
        while True:
            # asked first: what one that has ended printed is in the pipe by then
            has_ended = process.poll() is not None
            ready, _, _ = select.select([stdout], [], [], _PAUSE_SECONDS)
            data = os.read(stdout.fileno(), 1 << 16) if ready else b""
            if data:
                yield data.decode("utf-8", "replace")
            elif ready or has_ended:
                break
    process.wait()
    _signal(process.pid, family, signal.SIGKILL)


def _end(process: "subprocess.Popen[bytes]", family: set[int]) -> None:
    # some of them may have left the group, and lose their parent with the next line
    family |= descendants(process.pid)
    _signal(process.pid, family, signal.SIGTERM)
    timer = threading.Timer(
        _GRACE_SECONDS, lambda: process.poll() is None and _signal(process.pid, family, signal.SIGKILL)
    )
    timer.daemon = True
    timer.start()


def _signal(group: int, family: set[int], number: int) -> None:
    for target in (-group, *family):
        with contextlib.suppress(ProcessLookupError):
            os.kill(target, number)


def run_in_client(card: Card, command: str) -> str:
    """Run `command` in a terminal of the client and close the card; returns what it printed. Raises `Cancelled`."""
    session, cancel, faults = card.session, card.turn.cancel, card.session.faults
    card.progress()
    scope: JsonObject = {"sessionId": session.id}
    asked: JsonObject = {**scope, "command": "bash", "args": ["-c", command], "cwd": session.cwd}

    def release(frame: JsonObject) -> None:
        if "result" in frame and "no-release" not in faults:
            terminal = {**scope, "terminalId": frame["result"]["terminalId"]}
            for _ in range(2 if "releases-twice" in faults else 1):
                session.wire.request("terminal/release", terminal, Cancel.after(1.0))

    created = session.wire.request(
        "terminal/create", asked, cancel, late=lambda frame: threading.Thread(target=release, args=(frame,)).start()
    )
    if "result" not in created:
        text = f"the client made no terminal: {created['error'].get('message')}"
        card.close(text, is_done=False)
        return text
    terminal: JsonObject = {**scope, "terminalId": created["result"]["terminalId"]}
    block = {"type": "terminal", "terminalId": terminal["terminalId"]}
    if "releases-first" in faults:
        release(created)
    card.update(content=[block])
    code: Any = None
    try:
        waits = Cancel() if "waits-for-terminals" in faults else cancel
        ended = session.wire.request("terminal/wait_for_exit", terminal, waits)
        code = table(ended.get("result")).get("exitCode")
    except Cancelled:
        _quick(card, "terminal/kill", terminal)
    text = str(table(_quick(card, "terminal/output", terminal).get("result")).get("output", ""))
    card.close(text, is_done=code == 0, content=[block])
    if "releases-first" not in faults:
        release(created)
    cancel.check()
    return f"{text}\n[exit code {code}]"


def _quick(card: Card, method: str, params: JsonObject) -> JsonObject:
    """A request that may be left without an answer."""
    with contextlib.suppress(Cancelled):
        return card.session.wire.request(method, params, Cancel.after(1.0))
    return {}


def display_terminal(card: Card) -> None:
    """Give the card a terminal that the client only displays."""
    card.terminal = f"term-{uuid.uuid4()}"
    card.content = [{"type": "terminal", "terminalId": card.terminal}]
