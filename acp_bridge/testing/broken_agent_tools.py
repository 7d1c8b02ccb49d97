"""The tools of the broken agent: bash, read, write, todo, ask_user, and those of MCP servers.

May not know: methods, turns beyond the one that calls. Standard library only. Invariant: a call of the model gets one
text as its result, whatever it asked for; a file is read and written through the client where the client offers it.
"""

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acp_bridge.testing.broken_agent_card import Card
from acp_bridge.testing.broken_agent_mcp import McpServer
from acp_bridge.testing.broken_agent_model import Call
from acp_bridge.testing.broken_agent_session import Session, Turn
from acp_bridge.testing.broken_agent_shell import display_terminal, run_in_client, run_local
from acp_bridge.testing.broken_agent_wire import Cancelled, RpcError, table
from acp_bridge.testing.json_values import JsonObject, as_object

_STRING: JsonObject = {"type": "string"}
_INTEGER: JsonObject = {"type": "integer"}
_ENTRY: JsonObject = {
    "type": "object",
    "properties": {"content": _STRING, "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}},
    "required": ["content", "status"],
}


def _function(name: str, text: str, properties: JsonObject, *required: str) -> JsonObject:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": text, "parameters": parameters}}


_TOOLS = [
    _function("bash", "Run a command", {"command": _STRING, "description": _STRING}, "command"),
    _function("read", "Read a file from a line on", {"path": _STRING, "offset": _INTEGER, "limit": _INTEGER}, "path"),
    _function("write", "Write a whole file", {"path": _STRING, "content": _STRING}, "path", "content"),
    _function("ask_user", "Ask the user a question", {"question": _STRING}, "question"),
    _function("todo", "Replace the plan", {"entries": {"type": "array", "items": _ENTRY}}, "entries"),
]


def offered(session: Session) -> list[JsonObject]:
    """The tools of a model request."""
    rows = list(_TOOLS)
    for name, (_, tool) in _foreign(session).items():
        function = {"name": name, "description": tool.get("description", ""), "parameters": tool["inputSchema"]}
        rows.append({"type": "function", "function": function})
    return rows


def _foreign(session: Session) -> dict[str, tuple[McpServer, JsonObject]]:
    tools = [(server, tool) for server in session.servers for tool in server.tools]
    return {re.sub(r"\W", "_", f"mcp_{server.name}_{tool['name']}"): (server, tool) for server, tool in tools}


def run_tool(session: Session, turn: Turn, call: Call) -> str:
    """Run a call of the model; returns its result. Raises `Cancelled`, after its card has ended."""
    try:
        arguments = as_object(json.loads(call.arguments))
    except ValueError:
        arguments = None
    run = _RUNS.get(call.name, _run_foreign)
    raw: JsonObject = {"arguments": call.arguments} if arguments is None else arguments
    card = Card(session, turn, call, title=call.name, kind="other", raw=raw)
    try:
        if arguments is None:
            raise KeyError("arguments that are a JSON object")
        return run(card, call.name, arguments)
    except Cancelled:
        if not card.is_closed:
            card.close("cancelled", is_done=False)
        raise
    except (KeyError, TypeError, OSError) as error:
        text = f"needs {error}" if isinstance(error, KeyError) else str(error)
        if not card.is_open:
            card.open()
        card.close(text, is_done=False)
        return text


def _is_refused(card: Card, grant: str, late: Callable[[], object]) -> bool:
    """Announce the card and ask; when it is refused, it is closed."""
    card.grant = grant
    if "late-allow" in card.session.faults:
        card.late = lambda _frame: late()
    if "asks-first" in card.session.faults:
        is_allowed = card.is_allowed()
        card.open()
    else:
        card.open()
        is_allowed = card.is_allowed()
    if not is_allowed:
        card.close("the user did not allow it", is_done=False)
    return not is_allowed


def _run_bash(card: Card, _name: str, arguments: JsonObject) -> str:
    command = str(arguments["command"])
    card.title, card.kind = command, "execute"
    if card.session.client.terminal:
        run = run_in_client
    else:
        run = run_local
        if card.session.client.display:
            display_terminal(card)
    if _is_refused(
        card, command, late=lambda: subprocess.run(["bash", "-c", command], cwd=card.session.cwd, check=False)
    ):
        return "the user did not allow it"
    return run(card, command)


def _run_read(card: Card, _name: str, arguments: JsonObject) -> str:
    path = _absolute(card.session, arguments["path"])
    line = max(1, int(arguments.get("offset", 1)))
    card.title, card.kind = f"Read {path}", "read"
    card.locations = [{"path": path, "line": line - ("lines-from-0" in card.session.faults)}]
    card.open()
    card.progress()
    lines = _read(card, path).splitlines(keepends=True)[line - 1 :]
    text = "".join(lines[: arguments.get("limit", len(lines))])
    card.close(text, is_done=True)
    return text


def _run_write(card: Card, _name: str, arguments: JsonObject) -> str:
    path, text = _absolute(card.session, arguments["path"]), str(arguments["content"])
    faults = card.session.faults
    try:
        before = _read(card, path)
    except OSError:
        before = None
    card.title, card.kind = f"Write {path}", "edit"
    card.locations = [{"path": path}]
    card.content = [_diff(path, "" if "empty-old-text" in faults else before, text)]
    if _is_refused(card, path, late=lambda: Path(path).write_text(text)):
        return "the user did not allow it"
    card.progress()
    _write(card, path, text)
    card.close("written", is_done=True, content=card.content)
    return "written"


def _diff(path: str, before: str | None, after: str) -> JsonObject:
    return {"type": "diff", "path": path, "oldText": before, "newText": after}


def _absolute(session: Session, path: Any) -> str:
    return os.path.normpath(os.path.join(session.cwd, str(path)))


def _read(card: Card, path: str) -> str:
    session = card.session
    if session.client.reads and "reads-disk-only" not in session.faults:
        return str(_ask(card, "fs/read_text_file", {"sessionId": session.id, "path": path}).get("content", ""))
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(card: Card, path: str, text: str) -> None:
    session = card.session
    if session.client.writes:
        _ask(card, "fs/write_text_file", {"sessionId": session.id, "path": path, "content": text})
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def _ask(card: Card, method: str, params: JsonObject) -> JsonObject:
    """A request to the client; its error is an `OSError`, null reads as an empty result."""
    frame = card.session.wire.request(method, params, card.turn.cancel)
    card.turn.cancel.check()
    if "error" in frame or ("null-is-failure" in card.session.faults and not frame["result"]):
        if "client-errors-crash" in card.session.faults:
            os._exit(1)
        raise OSError(f"{method}: {table(frame.get('error')).get('message')}")
    return table(frame.get("result"))


def _run_todo(card: Card, _name: str, arguments: JsonObject) -> str:
    entries = [{"priority": "medium", **entry} for entry in arguments["entries"]]
    if "plan-deltas" in card.session.faults:
        entries = entries[-1:]
    card.session.show({"sessionUpdate": "plan", "entries": entries})
    return "the plan is replaced"


def _run_ask_user(card: Card, _name: str, arguments: JsonObject) -> str:
    question, faults = str(arguments["question"]), card.session.faults
    card.title = question
    card.open()
    if not card.session.client.form:
        card.close("the client has no forms", is_done=False)
        return "the client has no forms"
    card.progress()
    name = "password" if "asks-for-passwords" in faults else "answer"
    schema = {"type": "object", "properties": {name: {"type": "string", "title": name.title()}}, "required": [name]}
    asked = {"sessionId": card.session.id, "mode": "form", "message": question, "requestedSchema": schema}
    frame = card.session.wire.request("elicitation/create", asked, card.turn.cancel)
    card.turn.cancel.check()
    result = table(frame.get("result"))
    answer = table(result.get("content")).get(name)
    if result.get("action") == "accept" and isinstance(answer, str):
        card.close(answer, is_done=True)
        return answer
    card.close("the user gave no answer", is_done=False)
    if "decline-is-fatal" in faults:
        raise RpcError(-32603, "no answer")
    return "the user gave no answer"


def _run_foreign(card: Card, name: str, arguments: JsonObject) -> str:
    found = _foreign(card.session).get(name)
    if found is None:
        raise KeyError(f"a tool that exists, not {name}")
    server, tool = found
    if _is_refused(card, name, late=lambda: None):
        return "the user did not allow it"
    card.progress()
    text, is_done = server.call(tool["name"], arguments, card.turn.cancel)
    card.close(text, is_done=is_done)
    return text


_RUNS: dict[str, Callable[[Card, str, JsonObject], str]] = {
    "bash": _run_bash,
    "read": _run_read,
    "write": _run_write,
    "todo": _run_todo,
    "ask_user": _run_ask_user,
}
