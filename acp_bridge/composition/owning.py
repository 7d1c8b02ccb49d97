"""Who else may speak to the sessions of this process: the local page, about loops.

May not know: pages. Invariant: nothing is made before a session has a loop; a process that cannot make its socket
works without one.
"""

import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import platformdirs
from anyio.abc import TaskGroup

from acp_bridge.config_file import APP
from acp_bridge.logs import Log
from acp_bridge.owner.protocol import Answer, Request
from agent_loop.agent import Agent
from agent_loop.commands.seam import CommandResult
from agent_loop.hooks import Hooks
from agent_loop.loops.runtime import WORKING
from agent_loop.runtime import Runtime

if TYPE_CHECKING:
    from acp_bridge.owner.listening import OwnerSocket

_REQUEST: Final = "owner/request"

RunLine = Callable[[str, str], Awaitable[CommandResult | None]]
"""Runs a command line in a session; None: it is not open here."""


def offer_socket(
    run_line: RunLine,
    *,
    places: Callable[[], Sequence[Path]],
    hooks: Hooks,
    runtime: Runtime,
    tasks: TaskGroup,
    log: Log,
) -> None:
    """From its first loop on, the lock file of a session names the socket of this process, in one of `places`."""

    async def carry_out(request: Request) -> Answer:
        result = await run_line(request.session_id, request.line)
        if result is None:
            return Answer(ok=False, text="This session is not open in that agent any more.")
        return Answer(result.ok, result.text)

    async def execute(request: Request) -> Answer:
        # the bus is the wall: a bug behind this socket must not end the agent
        results = await hooks.parallel(_REQUEST, request)
        return next((each for each in results if isinstance(each, Answer)), Answer(ok=False, text="Internal error."))

    def open_socket(agent: Agent) -> None:
        try:
            agent.session.journal.reachable_at(socket().address())
        except OSError as error:
            log.warning("no socket for the local page", problem=str(error))

    made: list[OwnerSocket] = []

    def socket() -> "OwnerSocket":
        if not made:
            # few sessions have loops
            from acp_bridge.owner.listening import OwnerSocket

            made.append(OwnerSocket(places(), execute, tasks=tasks, runtime=runtime))
        return made[0]

    hooks.on(_REQUEST, carry_out)
    hooks.on(WORKING, open_socket)


def socket_places(environment: Mapping[str, str]) -> Sequence[Path]:
    """Where the socket of this process may lie, best place first."""
    from acp_bridge.owner.places import directories

    return directories(environment, platformdirs.user_state_path(APP), Path(tempfile.gettempdir()))
