"""The smallest useful agent on the official Python SDK and httpx, as its users write it: the peer of the start-up race.

Run as a script; it speaks on stdin/stdout and would stream a model that it finds under `MODEL_URL`.
"""

import asyncio
import json
import os
import uuid

import acp
import httpx


class SdkAgent(acp.Agent):
    """One HTTP client, one list of messages per session."""

    def on_connect(self, conn):
        self._client = conn
        self._messages = {}
        self._http = httpx.AsyncClient(timeout=60)

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, mcp_servers=None, **_):
        session_id = str(uuid.uuid4())
        self._messages[session_id] = []
        return acp.NewSessionResponse(session_id=session_id)

    async def prompt(self, session_id, prompt, **_):
        messages = self._messages[session_id]
        messages.append({"role": "user", "content": "".join(block.text for block in prompt if block.type == "text")})
        body = {"model": "any", "stream": True, "messages": messages}
        async with self._http.stream("POST", f"{os.environ['MODEL_URL']}/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    delta = json.loads(line[6:])["choices"][0]["delta"].get("content")
                    if delta:
                        await self._client.session_update(session_id, acp.update_agent_message(acp.text_block(delta)))
        return acp.PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(SdkAgent()))
