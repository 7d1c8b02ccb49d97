"""An editor on the official Python SDK: keeps what it is shown, answers permissions with `allow_once`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import acp
from acp import schema

from tests.support.agent_process import AgentHome
from tests.support.official import agent_command


class SdkClient(acp.Client):
    """`updates` are the SDK's own model objects; `arrived` is set at each of them."""

    def __init__(self) -> None:
        self.updates = []
        self.asked = []
        self.arrived = asyncio.Event()

    def on_connect(self, conn):
        """Nothing to prepare."""

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        self.arrived.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call)
        option = next(option for option in options if option.kind == "allow_once")
        chosen = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=chosen)

    def of_kind(self, kind: str) -> list:
        return [update for update in self.updates if update.session_update == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update.content.text for update in self.of_kind(kind))


@asynccontextmanager
async def sdk_client(home: AgentHome) -> AsyncIterator[tuple]:
    """(client, the SDK's connection, its process): the SDK itself starts the console script."""
    client = SdkClient()
    async with acp.spawn_agent_process(client, *agent_command(), env=home.env, cwd=home.cwd) as (connection, process):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield client, connection, process
