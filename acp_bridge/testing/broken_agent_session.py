"""One session of the broken agent: its state, what was shown, what the model has read.

May not know: methods, tools, how turns are run. Standard library only. Invariant: what is shown is stored before it is
queued; a load shows the stored updates in their order, and no card of a dead process stays open.
"""

import os
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from acp_bridge.testing.broken_agent_mcp import McpServer
from acp_bridge.testing.broken_agent_store import SessionFile
from acp_bridge.testing.broken_agent_wire import Cancel, RpcError, Wire, table
from acp_bridge.testing.json_values import JsonObject, as_object

MODES = {"ask": "Ask before each effect", "full": "Ask nothing"}
_OPTIONS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "mode": ("Mode", "mode", tuple(MODES)),
    "model": ("Model", "model", ("large", "small")),
    "reasoning_effort": ("Reasoning", "thought_level", ("low", "high")),
}
COMMANDS: list[JsonObject] = [
    {"name": "status", "description": "Say what this session is"},
    {"name": "mode", "description": "Change the mode", "input": {"hint": "ask or full"}},
]
_SETTLE_SECONDS = 3.0
_TERMINAL_KEYS = ("terminal_info", "terminal_output", "terminal_exit")


class Client:
    """What the client can do, from its capabilities."""

    def __init__(self, capabilities: Any, faults: frozenset[str]) -> None:
        top = table(capabilities)
        fs, meta = table(top.get("fs")), table(top.get("_meta"))
        options = table(table(top.get("session")).get("configOptions"))
        self.reads = fs.get("readTextFile") is True or ("fs-unasked" in faults)
        self.writes = fs.get("writeTextFile") is True or ("fs-unasked" in faults)
        self.terminal = top.get("terminal") is True or ("null-is-yes" in faults and "terminal" in top)
        self.booleans = as_object(options.get("boolean")) is not None or "boolean-unasked" in faults
        self.form = as_object(table(top.get("elicitation")).get("form")) is not None
        self.display = meta.get("terminal_output") is True or "terminal-unasked" in faults
        self.auth_terminal = table(top.get("auth")).get("terminal") is True
        if "client-terminal-unasked" in faults:
            self.terminal = True
        if "elicitation-unasked" in faults:
            self.form = True


@dataclass(slots=True, eq=False)
class Turn:
    """One prompt. `has_shown` is set when the model has said or called something.

    `is_answered` is set with its answer, `settled` when it has left the queue: a client may speak in between.
    """

    request_id: Any
    blocks: list[JsonObject]
    cancel: Cancel = field(default_factory=Cancel)
    settled: threading.Event = field(default_factory=threading.Event)
    has_shown: bool = False
    is_answered: bool = False


class Session:
    """The state. `turns` holds the running prompt and those behind it."""

    def __init__(
        self, session_id: str, *, cwd: str, roots: list[str], file: SessionFile, wire: Wire, faults: frozenset[str]
    ) -> None:
        self.id = session_id
        self.cwd = cwd
        self.roots = [cwd, *roots]
        self.lock = threading.RLock()
        self.turns: deque[Turn] = deque()
        self.client = Client(None, faults)
        self.values: JsonObject = {name: values[0] for name, (_, _, values) in _OPTIONS.items()} | {"concise": False}
        self.history: list[JsonObject] = []
        self.servers: list[McpServer] = []
        self.allowed: set[str] = set()
        self.denied: set[str] = set()
        self.wire = wire
        self.faults = faults
        self.file = file
        self._shown: list[JsonObject] = []
        self._is_closed = False
        self.was_cancelled = False

    def restore(self) -> None:
        """Read the file. Cards that a dead process left open end here, and tool calls of the model get a result."""
        for record in self.file.records():
            if (message := record.get("message")) is not None:
                self.history.append(message)
            elif (length := record.get("drop")) is not None:
                del self.history[length:]
            elif (values := record.get("state")) is not None:
                self.values |= {} if "forgets-options" in self.faults else values
            elif "update" in record:
                self._shown.append(record)
        if "open-cards" not in self.faults:
            self._end_cards()
        answered = {message.get("tool_call_id") for message in self.history}
        for message in list(self.history):
            for call in message.get("tool_calls", []):
                if call["id"] not in answered:
                    self.remember({"role": "tool", "tool_call_id": call["id"], "content": "interrupted"})

    def _end_cards(self) -> None:
        opened: dict[str, bool] = {}
        terminals: dict[str, str] = {}
        for record in self._shown:
            update: JsonObject = record["update"]
            if update.get("status"):
                opened[update["toolCallId"]] = update["status"] in {"pending", "in_progress"}
            if info := update.get("_meta", {}).get("terminal_info"):
                terminals[update["toolCallId"]] = info["terminal_id"]
        for card, is_open in opened.items():
            if is_open:
                ended: JsonObject = {"sessionUpdate": "tool_call_update", "toolCallId": card, "status": "failed"}
                if card in terminals:
                    ended["_meta"] = {
                        "terminal_exit": {"terminal_id": terminals[card], "exit_code": None, "signal": "KILL"}
                    }
                self._keep(ended, None)

    def show(self, update: JsonObject, *, stored: JsonObject | None = None, plain: str | None = None) -> None:
        """Show an update, and again on load: as `stored` if given; `plain` is what a terminal in it held."""
        with self.lock:
            self._keep(stored or update, plain)
            self.send(update)

    def keep(self, update: JsonObject) -> None:
        """An update for load only."""
        with self.lock:
            self._keep(update, None)

    def send(self, update: JsonObject) -> None:
        """An update that is not shown again."""
        session_id = self.wire.newest if "crossed-sessions" in self.faults else self.id
        self.wire.send({"method": "session/update", "params": {"sessionId": session_id, "update": update}})

    def remember(self, message: JsonObject) -> None:
        """A message for the model."""
        self.history.append(message)
        self._append({"message": message})

    def forget(self, length: int) -> None:
        """Cut the model's messages to the first `length`."""
        del self.history[length:]
        self._append({"drop": length})

    def replay(self) -> None:
        """Show everything again."""
        with self.lock:
            for number, record in enumerate(self._shown):
                update: JsonObject = record["update"]
                if "loses-thoughts" in self.faults and update["sessionUpdate"] == "agent_thought_chunk":
                    continue
                if "loads-updates-only" in self.faults and update["sessionUpdate"] == "tool_call":
                    continue
                if "new-ids-on-load" in self.faults and "messageId" in update:
                    update = {**update, "messageId": f"{update['messageId']}-{number}-{os.getpid()}"}
                if not self.client.display:
                    update = _without_terminals(update, record.get("plain"))
                self.send(update)

    def announce(self) -> None:
        """The commands."""
        rows = COMMANDS
        if "slash-names" in self.faults:
            rows = [{**row, "name": f"/{row['name']}"} for row in rows]
        self.send({"sessionUpdate": "available_commands_update", "availableCommands": rows})

    def modes(self) -> JsonObject:
        """The `modes` of a session response."""
        current = "unheard-of" if "unlisted-mode" in self.faults else self.values["mode"]
        return {
            "currentModeId": current,
            "availableModes": [{"id": mode, "name": mode, "description": text} for mode, text in MODES.items()],
        }

    def options(self) -> list[JsonObject]:
        """The complete list of options."""
        rows: list[JsonObject] = []
        for name, (title, category, values) in _OPTIONS.items():
            shown = f"x_{name}" if "own-option-ids" in self.faults else name
            current = "unheard-of" if "unlisted-value" in self.faults else self.values[name]
            choices = [{"value": value, "name": value} for value in values]
            row: JsonObject = {"id": shown, "name": title, "category": category, "type": "select"}
            rows.append({**row, "currentValue": current, "options": choices})
        if self.client.booleans:
            row = {"id": "concise", "name": "Concise", "type": "boolean", "currentValue": self.values["concise"]}
            rows.append(row)
        return rows

    def state(self) -> JsonObject:
        """What new, load and resume answer."""
        late = "late-options" in self.faults
        return {"modes": self.modes(), **({} if late else {"configOptions": self.options()})}

    def set_value(self, name: Any, value: Any, *, is_boolean: bool = False) -> None:
        """Change an option and say so. Raises `RpcError` when there is no such option or value."""
        name = str(name).removeprefix("x_") if "own-option-ids" in self.faults else name
        known = name == "concise" and self.client.booleans if is_boolean else name in _OPTIONS
        fits = known and (isinstance(value, bool) if is_boolean else value in _OPTIONS[name][2])
        if not fits and "takes-any-value" not in self.faults:
            raise RpcError(-32602, "unknown option or value")
        self.values[name] = value
        self._append({"state": {name: value}})
        if name == "mode" and "modes-apart" not in self.faults:
            key = "modeId" if "mode-id" in self.faults else "currentModeId"
            self.send({"sessionUpdate": "current_mode_update", key: value})
        self.send({"sessionUpdate": "config_option_update", "configOptions": self.options()})

    def unanswered(self) -> list[Turn]:
        """The running prompt and those behind it."""
        with self.lock:
            return [turn for turn in self.turns if not turn.is_answered]

    def cancel_all(self) -> list[Turn]:
        """Cancel the running prompt and those behind it; returns them."""
        turns = self.unanswered()
        for turn in turns:
            turn.cancel.set()
        return turns

    def settle(self) -> None:
        """Cancel the prompts, and return when they have been answered."""
        for turn in self.cancel_all():
            turn.settled.wait(_SETTLE_SECONDS)

    def close(self, *, delete: bool = False) -> None:
        """End what runs beside the prompts, and let another process have the session."""
        self.stop_servers()
        with self.lock:
            self._is_closed = True
            self.file.close()
            if delete:
                self.file.path.unlink()

    def stop_servers(self) -> None:
        """End the MCP servers."""
        if "keeps-servers" not in self.faults:
            for server in self.servers:
                server.stop()

    def _append(self, record: JsonObject) -> None:
        with self.lock:
            if not self._is_closed:
                self.file.append(record)

    def _keep(self, update: JsonObject, plain: str | None) -> None:
        record: JsonObject = {"update": update} | ({} if plain is None else {"plain": plain})
        self._shown.append(record)
        self._append(record)


def text(value: str) -> JsonObject:
    """A text block."""
    return {"type": "text", "text": value}


def shown_text(value: str) -> JsonObject:
    """A text block as content of a tool call."""
    return {"type": "content", "content": text(value)}


def _without_terminals(update: JsonObject, plain: str | None) -> JsonObject:
    meta = {key: item for key, item in update.get("_meta", {}).items() if key not in _TERMINAL_KEYS}
    shown = {key: item for key, item in update.items() if key != "_meta"} | ({"_meta": meta} if meta else {})
    if "content" in shown and update["sessionUpdate"].startswith("tool_call"):
        shown["content"] = [item for item in shown["content"] if item["type"] != "terminal"]
    if plain is not None:
        shown["content"] = [shown_text(plain)]
    return shown
