"""The official Python SDK's client, with files and terminals, telling the story of `sdk_story`."""

from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

import acp
import anyio
from acp import schema

from tests.support.agent_process import LIMIT, AgentHome
from tests.support.official import agent_command
from tests.support.sdk_client import SdkClient
from tests.support.sdk_story import PERMISSIONS, PROMPTS, TERMINAL_OUTPUT, UNSAVED

CAPABILITIES = schema.ClientCapabilities(
    fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
)


class EquippedClient(SdkClient):
    """Answers permissions as it is told; its terminals run nothing."""

    def __init__(self, permissions: Sequence[str] = ()) -> None:
        super().__init__()
        self.offered: list[list[str]] = []
        self.read: list[str] = []
        self.written: list[list[str]] = []
        self.terminals: dict[str, bool] = {}
        self._permissions = list(permissions)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call)
        self.offered.append([option.kind for option in options])
        kind = self._permissions.pop(0)
        if kind == "cancelled":
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        option = next(option for option in options if option.kind == kind)
        chosen = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        if not path.endswith("todo.txt"):
            raise acp.RequestError.resource_not_found(path)
        self.read.append(path)
        return schema.ReadTextFileResponse(content=UNSAVED)

    async def write_text_file(self, session_id, path, content, **_):
        self.written.append([path, content])

    async def create_terminal(self, session_id, command, **_):
        terminal = f"terminal-{len(self.terminals) + 1}"
        self.terminals[terminal] = True
        return schema.CreateTerminalResponse(terminal_id=terminal)

    async def wait_for_terminal_exit(self, session_id, terminal_id, **_):
        return schema.WaitForTerminalExitResponse(exit_code=0)

    async def terminal_output(self, session_id, terminal_id, **_):
        ended = schema.TerminalExitStatus(exit_code=0)
        return schema.TerminalOutputResponse(output=TERMINAL_OUTPUT, truncated=False, exit_status=ended)

    async def release_terminal(self, session_id, terminal_id, **_):
        self.terminals[terminal_id] = False


@asynccontextmanager
async def equipped(home: AgentHome, permissions: Sequence[str] = ()):
    """(client, the SDK's connection), initialized."""
    client = EquippedClient(permissions)
    async with acp.spawn_agent_process(client, *agent_command(), env=home.env, cwd=home.cwd) as (connection, _process):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=CAPABILITIES)
        yield client, connection


async def tell_the_story(home: AgentHome) -> dict[str, Any]:
    """What `expected` says of it."""
    with anyio.fail_after(LIMIT):
        return await _told(home)


async def _told(home: AgentHome) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    async def prompt(connection, session, text):
        return (await connection.prompt(session_id=session, prompt=[acp.text_block(text)])).stop_reason

    async with equipped(home, PERMISSIONS) as (editor, connection):
        new = await connection.new_session(cwd=home.cwd, mcp_servers=[])
        session = new.session_id
        seen["mode"] = new.modes.current_mode_id
        seen["options"] = [option.id for option in new.config_options]
        seen["stops"] = [await prompt(connection, session, text) for text in PROMPTS[:-1]]
        await connection.set_session_mode(session_id=session, mode_id="full")
        changed = await connection.set_config_option(session_id=session, config_id="reasoning_effort", value="high")
        (seen["effort"],) = (o.current_value for o in changed.config_options if o.id == "reasoning_effort")
        seen["stops"].append(await prompt(connection, session, PROMPTS[-1]))
        seen["asked"] = [call.title.split("/")[-1] for call in editor.asked]
        seen["first options"] = editor.offered[0]
        last = {update.tool_call_id: update.status for update in editor.updates if hasattr(update, "tool_call_id")}
        seen["cards"] = list(last.values())
        seen["files read"], seen["files written"] = editor.read, editor.written
        seen["terminals"], seen["terminals open"] = len(editor.terminals), sum(editor.terminals.values())
        seen["modes"] = [update.current_mode_id for update in editor.of_kind("current_mode_update")]
        listed = await connection.list_sessions(cwd=home.cwd)
        seen["titles"] = [row.title for row in listed.sessions if row.session_id == session]
    async with equipped(home) as (editor, connection):
        loaded = await connection.load_session(cwd=home.cwd, session_id=session, mcp_servers=[])
        seen["loaded"] = " ".join(update.content.text for update in editor.of_kind("agent_message_chunk"))
        seen["loaded mode"] = loaded.modes.current_mode_id
        editor.updates.clear()
        await prompt(connection, session, "go on")
        seen["after the load"] = editor.text()
        await connection.close_session(session_id=session)
        editor.updates.clear()
        await connection.resume_session(cwd=home.cwd, session_id=session, mcp_servers=[])
        resumed = [update.session_update for update in editor.updates]
        seen["updates of the resume"] = [kind for kind in resumed if kind != "available_commands_update"]
        await prompt(connection, session, "and on")
        seen["after the resume"] = editor.text()
    return seen
