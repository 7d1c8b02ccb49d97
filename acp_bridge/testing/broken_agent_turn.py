"""A turn of the broken agent: from the blocks of a prompt to its stop reason.

May not know: methods other than the prompt. Standard library only. Invariant: everything of a turn is shown before it
returns; a cancelled turn ends as `Cancelled`, whatever failed because of it.
"""

import re
import uuid
from typing import Any

from acp_bridge.testing.broken_agent_model import Completion, ModelError, complete
from acp_bridge.testing.broken_agent_session import COMMANDS, MODES, Session, Turn, text
from acp_bridge.testing.broken_agent_tools import offered, run_tool
from acp_bridge.testing.broken_agent_wire import Cancelled, RpcError
from acp_bridge.testing.json_values import JsonObject

STEPS = 30
"""Model calls of one turn."""
WINDOW = 128_000
_STOPS = {"length": "max_tokens", "content_filter": "refusal"}
_KINDS = {"text": "agent_message_chunk", "reasoning": "agent_thought_chunk"}


def run_turn(session: Session, turn: Turn) -> str:
    """Run it; returns the stop reason. Raises `Cancelled`, or `RpcError` when the model failed."""
    turn.cancel.check()
    message_id = f"u-{uuid.uuid4()}"
    show = session.show if "echoes-prompts" in session.faults else session.keep
    for block in turn.blocks:
        show({"sessionUpdate": "user_message_chunk", "content": block, "messageId": message_id})
    command = re.match(r"/(\S+)\s*(.*)", str(turn.blocks[0].get("text", "")))
    if command is not None:
        name, rest = command.groups()
        is_known = name in {row["name"] for row in COMMANDS} and "commands-to-model" not in session.faults
        if is_known or ("paths-are-commands" in session.faults and "/" in name):
            _say(session, f"c-{uuid.uuid4()}", _run_command(session, name, rest))
            return "end_turn"
    before = len(session.history)
    session.remember({"role": "user", "content": "\n".join(map(_prompt_text, turn.blocks))})
    for server in session.servers:
        server.wait()
    stop = _steps(session, turn)
    if stop == "refusal" and "keeps-refused" not in session.faults:
        session.forget(before)
    return stop


def _steps(session: Session, turn: Turn) -> str:
    for _ in range(STEPS):
        completion = _complete(session, turn)
        if not completion.calls or completion.finish in _STOPS:
            stop = _STOPS.get(completion.finish, "end_turn")
            if stop == "max_tokens" and "odd-stop-reason" in session.faults:
                return "length"
            return "end_turn" if stop == "max_tokens" and "length-is-end" in session.faults else stop
        results = {call.id: "cancelled" for call in completion.calls}
        try:
            for call in completion.calls:
                results[call.id] = run_tool(session, turn, call)
        finally:
            for call_id, result in results.items():
                session.remember({"role": "tool", "tool_call_id": call_id, "content": result})
    return "max_turn_requests"


def _complete(session: Session, turn: Turn) -> Completion:
    """One model call, shown as it streams and remembered."""
    step = uuid.uuid4()
    said: list[str] = []

    def show(kind: str, piece: str) -> None:
        turn.cancel.check()
        turn.has_shown = True
        if kind == "text":
            said.append(piece)
        message_id = str(uuid.uuid4()) if "new-id-per-chunk" in session.faults else f"{kind}-{step}"
        update: JsonObject = {"sessionUpdate": _KINDS[kind], "content": text(piece), "messageId": message_id}
        session.show(update)
        session.wire.room(turn.cancel)

    if "notices" in session.faults:
        session.send({"sessionUpdate": "notice", "severity": "info", "title": "The model is asked"})
    system = {"role": "system", "content": f"You are a coding agent in {session.cwd}."}
    body: JsonObject = {
        "model": session.values["model"],
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [system, *session.history],
        "tools": offered(session),
    }
    try:
        completion = complete(body, turn.cancel, show, session.faults)
    except ModelError as error:
        raise RpcError(-32603, f"the model failed: {error}") from error
    except Cancelled:
        if said:
            session.remember({"role": "assistant", "content": "".join(said)})
        raise
    session.remember(completion.message())
    if "empty-chunks" in session.faults:
        session.show({"sessionUpdate": "agent_message_chunk", "content": text(""), "messageId": f"text-{step}"})
    if completion.usage:
        size = 0 if "usage-without-size" in session.faults else WINDOW
        session.send({"sessionUpdate": "usage_update", "used": completion.usage, "size": size})
    return completion


def _say(session: Session, message_id: str, said: str) -> None:
    session.show({"sessionUpdate": "agent_message_chunk", "content": text(said), "messageId": message_id})


def _run_command(session: Session, name: str, rest: str) -> str:
    if name == "mode" and rest in MODES:
        session.set_value("mode", rest)
    elif name not in {"mode", "status"}:
        return f"no such command: {name}"
    return f"{len(session.history)} messages, mode {session.values['mode']}"


def _prompt_text(block: JsonObject) -> str:
    resource: Any = block.get("resource") or {}
    if block["type"] == "text":
        return str(block["text"])
    if block["type"] == "resource_link":
        return f"[{block['name']}]({block['uri']})"
    return str(resource.get("text") or f"[{block['type']}]")
