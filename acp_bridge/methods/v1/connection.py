"""`initialize`, `authenticate` and `logout` (acp.md §2), and what every method handler is given.

May not know: prompts, turns. Invariant: capabilities are read at `initialize` and hold for sessions opened afterwards.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from acp_bridge.bridge import Bridge
from acp_bridge.credential_file import CredentialStoreError
from acp_bridge.live_session import LiveSession
from acp_bridge.methods.v1.initialize import (
    API_KEY_METHOD,
    SignIn,
    auth_methods,
    initialize_result,
    version_problem,
)
from acp_bridge.rpc.codes import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from acp_bridge.rpc.errors import RpcError
from acp_bridge.schema import AdvanceParams, AuthenticateParams, ClientCapabilities, LogoutParams
from agent_loop.session.store import SessionNotFoundError, SessionStoreError

AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002
ADVANCE_CLOCK = "_dsh/clock/advance"


class Authority(Protocol):
    """Whether the providers can be used."""

    @abstractmethod
    def missing(self, provider: str) -> str | None:
        """The fix; None when nothing is missing."""

    @abstractmethod
    def look_again(self) -> None:
        """Every source of keys counts, after a `sign_out` too."""

    @abstractmethod
    async def sign_out(self) -> None:
        """Forget every key. Raises `CredentialStoreError` when one cannot be removed."""


@dataclass(slots=True)
class Connection:
    """One client.

    `sign_in`: how the chosen provider gets its key. `methods`: those of authentication that were offered.
    `problem`: why no session can be opened (broken configuration), None when all is well.

    `advance` moves the virtual clock of a replay by milliseconds; None when the clock is real. `fork`: the unstable
    `session/fork` is switched on. `images`: prompts may hold images.
    """

    bridge: Bridge
    authority: Authority
    sign_in: SignIn
    problem: str | None = None
    advance: Callable[[int], None] | None = None
    fork: bool = False
    images: bool = False
    initialized: bool = False
    methods: tuple[str, ...] = ()

    def accept(self, params: dict[str, Any]) -> None:
        """`initialize` was answered with these params, here or on the light path."""
        self.bridge.capabilities = ClientCapabilities.from_params(params)
        self.methods = tuple(method["id"] for method in auth_methods(self.sign_in, params))
        self.initialized = True

    def require_settings(self) -> None:
        """Raises −32603 when the configuration is broken: now is when it matters."""
        if self.problem is not None:
            raise RpcError(INTERNAL_ERROR, self.problem, {"reason": "config"})

    async def require(self, session_id: str) -> LiveSession:
        """The live session. Raises −32002 naming the id."""
        live = await self.bridge.find(session_id)
        if live is None:
            raise not_found(session_id)
        return live

    def require_credential(self, provider: str) -> None:
        """Raises −32000 with the fix when the key of `provider` is missing; nothing has been logged yet."""
        if fix := self.authority.missing(provider):
            message = f"Authentication required: {fix}"
            raise RpcError(
                AUTH_REQUIRED, message, {"authRequired": True, "methods": list(self.methods), "details": message}
            )

    def redacted(self, error: RpcError) -> RpcError:
        """The same without secrets: results come from the log, which holds none; an error may quote anything."""
        secrets = self.bridge.parts.secrets
        return RpcError(error.code, secrets.redact(error.message), secrets.redact_json(error.data))


def not_found(session_id: str) -> RpcError:
    """−32002 `Session not found`."""
    details = f"no session {session_id!r:.100} is open here; session/new makes one, session/load opens a stored one"
    return RpcError(RESOURCE_NOT_FOUND, "Session not found", {"sessionId": session_id, "details": details})


def store_failure(error: SessionStoreError, session_id: str) -> RpcError:
    """−32002 when there is no such session, else −32603 with the reason: clients open a new session on other codes."""
    if isinstance(error, SessionNotFoundError):
        data = {"sessionId": session_id, "details": error.message}
        return RpcError(RESOURCE_NOT_FOUND, "Session not found", data)
    reason = error.code.removeprefix("SESSION_").lower()
    return RpcError(
        INTERNAL_ERROR,
        error.message[:1].upper() + error.message[1:],
        {"reason": reason, "details": error.message, "sessionId": session_id},
    )


async def initialize(connection: Connection, params: dict[str, Any]) -> dict[str, Any]:
    """Answer again, any time; the newest capabilities count."""
    if problem := version_problem(params):
        raise RpcError(INVALID_PARAMS, f"Invalid params: {problem}")
    connection.accept(params)
    return initialize_result(connection.sign_in, params, fork=connection.fork, images=connection.images)


async def authenticate(connection: Connection, params: AuthenticateParams) -> dict[str, Any]:
    """`{}` when a credential exists from any source, else −32000 with the fix; every other method is −32602."""
    if params.method_id != API_KEY_METHOD:
        why = "is run in a terminal" if params.method_id in connection.methods else "is unknown"
        raise RpcError(
            INVALID_PARAMS, f"Invalid params: methodId {params.method_id!r:.60} {why}; use {API_KEY_METHOD!r}"
        )
    connection.authority.look_again()
    connection.require_credential(connection.sign_in.provider)
    return {}


async def logout(connection: Connection, _params: LogoutParams) -> dict[str, Any]:
    """Sign out: no key counts until the next login or `authenticate`. −32603 when a stored one cannot be removed."""
    try:
        await connection.authority.sign_out()
    except CredentialStoreError as error:
        raise RpcError(
            INTERNAL_ERROR, f"Internal error: {error}", {"reason": "credentials", "details": str(error)}
        ) from error
    return {}


async def advance_clock(connection: Connection, params: AdvanceParams) -> dict[str, Any]:
    """Move the virtual clock; with a real one there is no such method (agent-loop.md §7)."""
    if connection.advance is None:
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {ADVANCE_CLOCK} (the clock is real)")
    connection.advance(params.ms)
    return {}
