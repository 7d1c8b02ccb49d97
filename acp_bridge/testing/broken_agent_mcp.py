"""MCP servers of a session of the broken agent, over stdio.

May not know: sessions, the wire of the client. Standard library only. Invariant: starting one never waits; a server
that cannot be started, or says nothing, offers no tools; `stop` leaves no process.
"""

import contextlib
import json
import os
import signal
import subprocess
import threading
from typing import Any

from acp_bridge.testing.broken_agent_wire import Cancel, table
from acp_bridge.testing.json_values import JsonObject, as_list

READY_SECONDS = 2.0
"""How long a turn waits for a server that has not told its tools."""


class McpServer:
    """One server; `tools` is empty until it has told them."""

    def __init__(self, entry: JsonObject) -> None:
        self.name = str(entry["name"])
        self.tools: list[JsonObject] = []
        self._settled = threading.Event()
        self._answers: dict[int, tuple[threading.Event, list[JsonObject]]] = {}
        self._asked = 0
        self._process: subprocess.Popen[bytes] | None = None
        rows = as_list(entry.get("env")) or []
        env: dict[str, str] = {row["name"]: row["value"] for row in rows}
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [entry["command"], *(as_list(entry.get("args")) or [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, **env},
                start_new_session=True,
            )
            threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
            threading.Thread(target=self._greet, daemon=True).start()

    def wait(self) -> None:
        """Return when it has told its tools or has ended, or after two seconds."""
        if self._process is not None:
            self._settled.wait(READY_SECONDS)

    def call(self, tool: str, arguments: JsonObject, cancel: Cancel) -> tuple[str, bool]:
        """The text of the tool's result, and whether it succeeded. Raises `Cancelled`."""
        answer = self._ask("tools/call", {"name": tool, "arguments": arguments}, cancel)
        cancel.check()
        result = table(answer.get("result"))
        parts = as_list(result.get("content")) or [{"text": "the server gave no result"}]
        return "\n".join(part.get("text", "") for part in parts), bool(result) and not result.get("isError")

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _greet(self) -> None:
        client = {"name": "broken-agent", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}, Cancel())
        self._write({"method": "notifications/initialized"})
        self.tools = table(self._ask("tools/list", {}, Cancel()).get("result")).get("tools", [])
        self._settled.set()

    def _ask(self, method: str, params: JsonObject, cancel: Cancel) -> JsonObject:
        self._asked += 1
        number = self._asked
        done, box = self._answers[number] = (threading.Event(), [])
        cancel.on_set(done.set)
        self._write({"id": number, "method": method, "params": params})
        done.wait()
        return box[0] if box else {}

    def _write(self, frame: JsonObject) -> None:
        process: Any = self._process
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
            process.stdin.flush()

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        stdout: Any = process.stdout
        for line in stdout:
            frame = json.loads(line)
            if frame.get("id") in self._answers and "method" not in frame:
                done, box = self._answers[frame["id"]]
                box.append(frame)
                done.set()
        # whoever still waits gets nothing
        for done, _box in list(self._answers.values()):
            done.set()
        self._settled.set()
