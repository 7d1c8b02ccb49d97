"""The methods of the broken agent, and the way from a frame to its answer.

May not know: how a turn does its work. Standard library only. Invariant: a request is answered once, a notification
never; prompts of one session run one after another, each with its own answer.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

from acp_bridge.testing.broken_agent_mcp import McpServer
from acp_bridge.testing.broken_agent_model import key
from acp_bridge.testing.broken_agent_prompts import Prompts, accepted
from acp_bridge.testing.broken_agent_session import MODES, Client, Session, Turn
from acp_bridge.testing.broken_agent_store import SessionFile, listed, root
from acp_bridge.testing.broken_agent_wire import INPUT_LIMIT, RpcError, Wire, frames, table
from acp_bridge.testing.json_values import JsonObject, as_list, as_object

_FLUSH_SECONDS = 1.0
_SLOW_END_SECONDS = 3.0


class Agent:
    """One process. `serve` ends it."""

    def __init__(self, faults: frozenset[str], output: int) -> None:
        self._faults = faults
        self._wire = Wire(faults, output, lambda: self.end(flush=False))
        self._prompts = Prompts(faults, self._wire)
        self._sessions: dict[str, Session] = {}
        self._client: Client | None = None
        self._capabilities: Any = None
        self._is_logged_out = False
        self._is_forgetful = False
        self._closed: list[str] = []
        self._closing: list[Session] = []
        self._unanswered: set[str] = set()
        self._ending = threading.Lock()
        self._requests: dict[str, Callable[[JsonObject], JsonObject]] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "logout": self._logout,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def serve(self, stream: IO[bytes]) -> NoReturn:
        """Answer until the input ends or the client reads no more."""
        limit = (64 << 10) if "short-lines-only" in self._faults else INPUT_LIMIT
        for frame in frames(stream, limit):
            if "waits-for-output" in self._faults:
                self._wire.drain(60.0)
            if isinstance(frame, RpcError):
                if "dies-of-garbage" in self._faults:
                    os._exit(1)
                self._wire.refuse(None, frame)
            else:
                self._take(frame)
        self.end(flush=True)

    def end(self, *, flush: bool) -> NoReturn:
        """Settle what runs, end what was started, leave."""
        # never released: whoever comes second waits for the exit
        self._ending.acquire()
        signal_code = 3 if "exit-code" in self._faults else 0
        is_busy = any(session.unanswered() for session in self._sessions.values())
        time.sleep(_SLOW_END_SECONDS if is_busy and "impatient-load" in self._faults else 0)  # this is the fault
        if "leaves-orphans" not in self._faults:
            for session in self._sessions.values():
                session.cancel_all()
            for session in self._sessions.values():
                session.settle()
                session.close()
        if flush:
            self._wire.drain(_FLUSH_SECONDS)
        os._exit(signal_code)

    def _take(self, frame: JsonObject) -> None:
        method, request_id = frame.get("method"), frame.get("id")
        if not isinstance(method, str):
            if not self._wire.settle(frame) and "answers-responses" in self._faults:
                self._wire.refuse(request_id, RpcError(-32600, "nobody asked"))
            return
        if "needs-params" in self._faults and as_object(frame.get("params")) is None and "id" in frame:
            self._wire.refuse(request_id, RpcError(-32602, "params is missing"))
            return
        params = table(frame.get("params"))
        if "id" not in frame:
            self._notice(method, params)
            return
        if request_id is not None and type(request_id) not in {int, str}:
            self._wire.refuse(None, RpcError(-32600, "an id is a number or a string"))
            return
        try:
            self._request(method, request_id, params)
        except RpcError as error:
            self._wire.refuse(request_id, error)

    def _notice(self, method: str, params: JsonObject) -> None:
        if method == "session/cancel":
            session = self._sessions.get(str(params.get("sessionId")))
            if session is not None:
                self._prompts.cancel(session)
        elif method == "$/cancel_request":
            self._prompts.cancel_request(params.get("requestId"), self._sessions.values())
        elif "answers-notifications" in self._faults:
            self._wire.refuse(None, RpcError(-32601, f"Method not found: {method}"))

    def _request(self, method: str, request_id: Any, params: JsonObject) -> None:
        if self._client is None and method != "initialize":
            if "early-requests-lost" not in self._faults:
                raise RpcError(-32600, "Not initialized")
            return
        if method == "session/prompt":
            self._prompt(request_id, params)
            return
        if method == "session/cancel":
            self._notice(method, params)
            self._wire.answer(request_id, {})
            return
        handler = self._requests.get(method)
        if handler is None:
            if "null-for-unknown" not in self._faults:
                raise RpcError(-32601, f"Method not found: {method}")
            self._wire.answer(request_id, None)
            return
        result = handler(params)
        if method in self._unanswered:
            self._unanswered.discard(method)
            return
        self._wire.answer(request_id, result)
        while self._closing:
            self._closing.pop().cancel_all()
        session = self._sessions.get(str(params.get("sessionId", result.get("sessionId"))))
        if session is not None and method in {"session/new", "session/load", "session/resume"}:
            if "answers-load-first" in self._faults and method == "session/load":
                session.replay()
            if "late-options" in self._faults:
                session.send({"sessionUpdate": "config_option_update", "configOptions": session.options()})
            session.announce()

    def _initialize(self, params: JsonObject) -> JsonObject:
        version: Any = params.get("protocolVersion")
        if isinstance(version, bool) or not isinstance(version, (int, float, str)):
            raise RpcError(-32602, "protocolVersion is a number")
        if "dies-of-odd-versions" in self._faults and not isinstance(version, int):
            os._exit(1)
        if "needs-home" in self._faults and "HOME" not in os.environ:
            os._exit(1)
        if "refuses-versions" in self._faults and isinstance(version, int) and version != 1:
            raise RpcError(-32602, "this version is not spoken")
        self._capabilities = params.get("clientCapabilities")
        self._client = Client(self._capabilities, self._faults)
        sessions: JsonObject = {name: {} for name in ("list", "delete", "resume", "close", "additionalDirectories")}
        if "advertises-more" in self._faults:
            self._requests.pop("logout", None)
        result: JsonObject = {
            "protocolVersion": 2 if "another-version" in self._faults else 1,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": False, "sse": False},
                "sessionCapabilities": sessions,
                "auth": {"logout": {}},
            },
            "authMethods": self._auth_methods(),
        }
        if "no-agent-info" not in self._faults:
            result["agentInfo"] = {"name": "broken-agent", "title": "Broken agent", "version": "1"}
        return result

    def _auth_methods(self) -> list[JsonObject]:
        rows: list[JsonObject] = [{"id": "api-key", "name": "API key", "description": "Reads OPENAI_API_KEY"}]
        if "env-var-method" in self._faults:
            rows.append({"type": "env_var", "id": "env", "name": "Environment", "vars": []})
        if (self._client is not None and self._client.auth_terminal) or "terminal-login-always" in self._faults:
            rows.append({"type": "terminal", "id": "login", "name": "Log in", "args": ["--list"]})
        return rows

    def _authenticate(self, params: JsonObject) -> JsonObject:
        method: Any = params.get("methodId")
        if method != "api-key" and not ("any-method" in self._faults and isinstance(method, str)):
            raise RpcError(-32602, "unknown method")
        if not key() or "authenticate-fails" in self._faults:
            raise self._auth_required()
        self._is_logged_out = False
        self._is_forgetful = "forgets-authentication" in self._faults
        return {}

    def _auth_required(self) -> RpcError:
        if "vague-about-keys" in self._faults:
            return RpcError(-32603, "something is wrong")
        data = {"authRequired": True, "methods": [row["id"] for row in self._auth_methods()]}
        return RpcError(-32000, "Authentication required: set OPENAI_API_KEY", data)

    def _logout(self, _params: JsonObject) -> JsonObject:
        self._is_logged_out = "ignores-logout" not in self._faults
        return {}

    def _new(self, params: JsonObject) -> JsonObject:
        if self._is_forgetful:
            raise self._auth_required()
        cwd, roots = self._directories(params)
        session_id = str(uuid.uuid4())
        if self._closed:
            session_id = self._closed.pop()
            (root() / f"{session_id}.jsonl").unlink()
        if "early-updates" in self._faults:
            update: JsonObject = {"sessionUpdate": "available_commands_update", "availableCommands": []}
            self._wire.send({"method": "session/update", "params": {"sessionId": session_id, "update": update}})
        file = SessionFile(session_id, self._faults, head={"head": {"cwd": cwd, "roots": roots}})
        session = self._opened(
            Session(session_id, cwd=cwd, roots=roots, file=file, wire=self._wire, faults=self._faults), params
        )
        return {"sessionId": session_id, **session.state()}

    def _directories(self, params: JsonObject) -> tuple[str, list[str]]:
        cwd: Any = params.get("cwd")
        is_taken = isinstance(cwd, str) and (os.path.isabs(cwd) or "relative-directories" in self._faults)
        if not is_taken or not Path(cwd).is_dir():
            raise RpcError(-32602, "cwd is an absolute path of a directory")
        roots = [str(path) for path in as_list(params.get("additionalDirectories")) or []]
        if not all(map(os.path.isabs, roots)) and "relative-roots" not in self._faults:
            raise RpcError(-32602, "additionalDirectories are absolute paths")
        if "needs-lists" in self._faults and as_list(params.get("mcpServers")) is None:
            raise RpcError(-32602, "mcpServers is a list")
        return cwd, roots

    def _opened(self, session: Session, params: JsonObject) -> Session:
        """Make it live, for this client and with its servers."""
        session.client = Client(self._capabilities, self._faults)
        entries = [entry for item in as_list(params.get("mcpServers")) or [] if (entry := as_object(item))]
        if "http-servers-are-fatal" in self._faults and any(entry.get("type") for entry in entries):
            raise RpcError(-32602, "this kind of server is not supported")
        if "no-servers" not in self._faults:
            local = [entry for entry in entries if isinstance(entry.get("command"), str) and "name" in entry]
            session.servers = [McpServer(entry) for entry in local]
        if "waits-for-servers" in self._faults:
            for server in session.servers:
                for _ in range(2):
                    server.wait()
        self._sessions[session.id] = session
        self._wire.newest = session.id
        return session

    def _reopened(self, params: JsonObject) -> Session:
        session_id = str(params.get("sessionId"))
        cwd, roots = self._directories(params)
        session = self._sessions.get(session_id)
        if session is not None:
            if "load-cancels" in self._faults:
                self._prompts.cancel(session)
            session.client = Client(self._capabilities, self._faults)
            return session
        try:
            file = SessionFile(session_id, self._faults)
        except RpcError as error:
            if "invents-sessions" not in self._faults or error.code != -32002:
                raise
            file = SessionFile(session_id, self._faults, head={"head": {"cwd": cwd, "roots": roots}})
        stored = str(file.records()[0]["head"]["cwd"])
        is_same = stored == cwd if "compares-spelling" in self._faults else os.path.samefile(stored, cwd)
        if not is_same:
            file.close()
            raise RpcError(-32603, f"this session belongs to {stored}", {"sessionId": session_id})
        session = Session(session_id, cwd=cwd, roots=roots, file=file, wire=self._wire, faults=self._faults)
        session.restore()
        return self._opened(session, params)

    def _load(self, params: JsonObject) -> JsonObject:
        session = self._reopened(params)
        if "answers-load-first" not in self._faults:
            session.replay()
        return session.state()

    def _resume(self, params: JsonObject) -> JsonObject:
        session = self._reopened(params)
        if "resume-replays" in self._faults:
            session.replay()
        return session.state()

    def _list(self, params: JsonObject) -> JsonObject:
        return listed(params.get("cwd"), params.get("cursor"), self._faults)

    def _close(self, params: JsonObject) -> JsonObject:
        session_id = str(params.get("sessionId"))
        session = self._sessions.get(session_id)
        if session is None:
            if "unknown-close-hangs" in self._faults:
                self._unanswered.add("session/close")
                return {}
            raise RpcError(-32002, "Resource not found", {"sessionId": session_id})
        if "closed-stays-live" in self._faults:
            session.settle()
            session.stop_servers()
        else:
            del self._sessions[session_id]
            if "closes-first" in self._faults:
                self._closing.append(session)
            else:
                session.settle()
            session.close()
        if "ids-come-back" in self._faults:
            self._closed.append(session_id)
        return {}

    def _delete(self, params: JsonObject) -> JsonObject:
        session_id = str(params.get("sessionId"))
        session = self._sessions.get(session_id)
        if session is not None and "live-delete-hangs" in self._faults:
            self._unanswered.add("session/delete")
        elif session is not None:
            del self._sessions[session_id]
            session.settle()
            session.close(delete="delete-keeps" not in self._faults)
        elif "delete-keeps" not in self._faults:
            try:
                file = SessionFile(session_id, self._faults)
            except RpcError:
                if "delete-needs-it" in self._faults:
                    raise
                return {}
            file.path.unlink()
            file.close()
        return {}

    def _live(self, params: JsonObject) -> Session:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is None:
            raise RpcError(-32002, "Resource not found", {"sessionId": params.get("sessionId")})
        return session

    def _set_mode(self, params: JsonObject) -> JsonObject:
        session = self._live(params)
        if "modes-when-idle" in self._faults and session.unanswered():
            raise RpcError(-32600, "the session is busy")
        if params.get("modeId") not in MODES and "any-mode" in self._faults:
            return {}
        session.set_value("x_mode" if "own-option-ids" in self._faults else "mode", params.get("modeId"))
        return {}

    def _set_option(self, params: JsonObject) -> JsonObject:
        session = self._live(params)
        name: Any = params.get("configId")
        session.set_value(name, params.get("value"), is_boolean=params.get("type") == "boolean")
        rows = session.options()
        return {
            "configOptions": [row for row in rows if row["id"] == name] if "partial-options" in self._faults else rows
        }

    def _prompt(self, request_id: Any, params: JsonObject) -> None:
        if "unknown-session-runs" in self._faults and str(params.get("sessionId")) not in self._sessions:
            self._wire.answer(request_id, {"stopReason": "end_turn"})
            return
        session = self._live(params)
        blocks = accepted(params.get("prompt"), self._faults)
        if not key() or self._is_logged_out:
            raise self._auth_required()
        if "busy-is-deaf" in self._faults and session.unanswered():
            return
        self._prompts.add(session, Turn(request_id, blocks))
