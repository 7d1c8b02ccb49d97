"""The peer of the comparison: a minimal streaming agent on the official Python SDK and httpx, as its users write one.

May not know: anything of the benchmark but where its model is (`OPENAI_BASE_URL`). Invariant: it keeps what a user
needs (a log line per delta, the history for the next prompt) and does nothing else, so that what it costs is the SDK.
"""

import asyncio
import json
import os
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, cast

import acp
import httpx


@dataclass(slots=True)
class _Session:
    log: TextIO
    messages: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    events: int = 0

    def write(self, text: str) -> None:
        chunk = {"type": "text-delta", "index": 0, "text": text}
        data = {"turn": 1, "step": 1, "chunk": chunk}
        event = {"type": "assistant/chunk", "seq": self.events, "time": int(time.time() * 1000), "data": data}
        self.log.write(json.dumps(event) + "\n")
        self.events += 1


class SdkPeer(acp.Agent):
    """One HTTP client; a log and a list of messages per session."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._http = httpx.AsyncClient(timeout=None)  # noqa: S113 - the benchmark has a time limit of its own

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, *_: Any, **__: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, *_: Any, **__: Any) -> acp.NewSessionResponse:
        session_id = uuid.uuid4().hex
        log = Path.home() / f"{session_id}.jsonl"
        self._sessions[session_id] = _Session(log.open("w", encoding="utf-8", buffering=1))
        return acp.NewSessionResponse(session_id=session_id)

    async def prompt(self, prompt: list[Any], session_id: str, *_: Any, **__: Any) -> acp.PromptResponse:
        session, said = self._sessions[session_id], ""
        session.messages.append({"role": "user", "content": "".join(block.text for block in prompt)})
        async for text in self._deltas(session.messages):
            said += text
            session.write(text)
            await self._client.session_update(session_id, acp.update_agent_message(acp.text_block(text)))
        session.messages.append({"role": "assistant", "content": said})
        return acp.PromptResponse(stop_reason="end_turn")

    async def _deltas(self, messages: list[dict[str, str]]) -> AsyncIterator[str]:
        body = {"model": "bench", "stream": True, "messages": messages}
        url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
        async with self._http.stream("POST", url, json=body) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        if text := choice["delta"].get("content"):
                            yield text


if __name__ == "__main__":
    # the SDK asks its users for the methods that they serve, not for all that its class declares
    asyncio.run(acp.run_agent(cast("Any", SdkPeer)()))
