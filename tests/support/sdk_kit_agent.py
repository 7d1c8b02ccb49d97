"""A minimal agent on the official Python SDK, as its users write one: it streams a model and runs commands.

Standard library and `agent-client-protocol` only, so that a virtual environment with the built wheel can run it. It
knows one tool, asks before each command, can be cancelled, and keeps its sessions in memory.
"""

import asyncio
import contextlib
import json
import os
import signal
import uuid
from urllib.parse import urlsplit

import acp
from acp.schema import AgentCapabilities, Implementation, PermissionOption, ToolCallUpdate

TOOL = {
    "type": "function",
    "function": {
        "name": "run_command",
        "description": "Run a shell command",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
LIMIT = 30_000
OPTIONS = [
    PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
]


async def stream(messages):
    """The events of one streamed completion."""
    key = os.environ.get("OPENAI_API_KEY")
    if not key:
        raise acp.RequestError.auth_required({"details": "set OPENAI_API_KEY"})
    base = urlsplit(os.environ["OPENAI_BASE_URL"])
    body = json.dumps({"model": "any", "stream": True, "messages": messages, "tools": [TOOL]}).encode()
    head = f"POST {base.path}/chat/completions HTTP/1.1\r\nhost: {base.netloc}\r\nauthorization: Bearer {key}\r\n"
    reader, writer = await asyncio.open_connection(base.hostname, base.port)
    try:
        writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        if status != 200:
            raise acp.RequestError.internal_error({"details": f"the model answered HTTP {status}"})
        rest = b""
        while size := int(await reader.readline() or b"0", 16):
            *lines, rest = (rest + await reader.readexactly(size)).split(b"\n")
            await reader.readline()
            for line in lines:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])
    finally:
        writer.close()


class KitAgent(acp.Agent):
    """One conversation per session."""

    def on_connect(self, conn):
        self._client = conn
        self._sessions = {}
        self._turns = {}

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="sdk-kit-agent", version="1"),
        )

    async def new_session(self, cwd, mcp_servers=None, **_):
        if not os.path.isabs(cwd):
            raise acp.RequestError.invalid_params({"cwd": "not absolute"})
        session_id = str(uuid.uuid4())
        self._sessions[session_id] = (cwd, [])
        return acp.NewSessionResponse(session_id=session_id)

    async def cancel(self, session_id, **_):
        if session_id in self._turns:
            self._turns[session_id].cancel()

    async def prompt(self, session_id, prompt, **_):
        if session_id not in self._sessions:
            raise acp.RequestError.invalid_params({"sessionId": "unknown"})
        if session_id in self._turns:
            raise acp.RequestError.invalid_request({"details": "the session is busy"})
        turn = asyncio.ensure_future(self._run(session_id, prompt))
        self._turns[session_id] = turn
        try:
            return acp.PromptResponse(stop_reason=await turn)
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # the connection has ended
                raise
            return acp.PromptResponse(stop_reason="cancelled")
        finally:
            del self._turns[session_id]

    async def _run(self, session_id, prompt):
        _, messages = self._sessions[session_id]
        texts = [block.text if block.type == "text" else getattr(block, "uri", block.type) for block in prompt]
        messages.append({"role": "user", "content": "\n".join(texts)})
        while True:
            text, calls, finish = "", [], None
            async for event in stream(messages):
                choice = event["choices"][0]
                finish = choice["finish_reason"] or finish
                if piece := choice["delta"].get("content"):
                    text += piece
                    await self._client.session_update(session_id, acp.update_agent_message_text(piece))
                for part in choice["delta"].get("tool_calls", []):
                    if part["index"] == len(calls):
                        calls.append({"id": part["id"], "name": part["function"]["name"], "arguments": ""})
                    calls[part["index"]]["arguments"] += part["function"].get("arguments", "")
            if not calls:
                messages.append({"role": "assistant", "content": text})
                return "max_tokens" if finish == "length" else "end_turn"
            functions = [{"id": call["id"], "type": "function", "function": call} for call in calls]
            messages.append({"role": "assistant", "content": text, "tool_calls": functions})
            for call in calls:
                try:
                    result = await self._tool(session_id, json.loads(call["arguments"])["command"])
                except (ValueError, KeyError):
                    result = "the arguments are no JSON object with a command"
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    async def _tool(self, session_id, command):
        cwd, _ = self._sessions[session_id]
        card, raw = str(uuid.uuid4()), {"command": command}
        await self._client.session_update(
            session_id, acp.start_tool_call(card, command, kind="execute", status="pending", raw_input=raw)
        )
        status, output = "failed", "rejected"
        try:
            asked = ToolCallUpdate(tool_call_id=card, title=command, kind="execute", status="pending", raw_input=raw)
            answer = await self._client.request_permission(session_id, asked, OPTIONS)
            if answer.outcome.outcome == "selected" and answer.outcome.option_id == "allow":
                await self._client.session_update(session_id, acp.update_tool_call(card, status="in_progress"))
                status, output = await run(command, cwd)
        finally:
            content = [acp.tool_content(acp.text_block(output))]
            # once the connection has ended nothing can be sent
            with contextlib.suppress(ConnectionError):
                await self._client.session_update(
                    session_id, acp.update_tool_call(card, status=status, content=content)
                )
        return output


async def run(command, cwd):
    """Run a command; it is killed when the turn is cancelled."""
    process = await asyncio.create_subprocess_exec(
        "sh",
        "-c",
        command,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        # a wait would last as long as any process that holds the pipe
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return ("failed" if process.returncode else "completed"), output[-LIMIT:].decode(errors="replace")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(KitAgent()))
