"""The rules of MCP servers that a client names: they are used, cannot hurt, and die with their session.

May not know: what an agent does with a tool's result. Invariant: each check speaks about one rule, by its id; the
servers are files of this package, run by this interpreter.
"""

import select
import socket
import sys
from pathlib import Path

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import said, tools_of
from acp_bridge.testing.conformance.turns import Check, begin, body_of, gone, provoked, ran, require, shown
from acp_bridge.testing.json_values import JsonObject

_ECHO = Path(__file__).with_name("mcp_echo.py")
_START_SECONDS = 2.0


def _server(name: str, *argv: str) -> JsonObject:
    return {"name": name, "command": argv[0], "args": list(argv[1:]), "env": []}


def _echo(pids: Path) -> JsonObject:
    return _server("echo", sys.executable, str(_ECHO), str(pids))


def their_tools_are_offered(lab: Lab) -> None:
    """MCP-01."""
    with lab.agent() as agent:
        session = agent.new_session(mcpServers=[_echo(lab.root / "pids")])
        ran(lab, agent, session, said("done"))
        provoked(lab.model.requests, "the model was never called")
        names = [tool.name for tool in tools_of(lab.model.requests[-1].body)]
        require(
            any("echo" in name for name in names), f"a stdio server has the tool echo; the model is offered {names}"
        )


def http_only_when_advertised(lab: Lab) -> None:
    """MCP-02."""
    with socket.create_server(("127.0.0.1", 0)) as listener, lab.agent() as agent:
        agent.new_session()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        for kind in ("http", "sse"):
            is_advertised = agent.advertises(f"mcpCapabilities.{kind}")
            _starts(agent, lab, {"type": kind, "name": kind, "url": url, "headers": []})
            require(is_advertised or not _called(listener), f"{kind} is not advertised, and the agent connected")


def _called(listener: socket.socket) -> bool:
    """Whether somebody has connected."""
    return bool(select.select([listener], [], [], 0.1)[0])


def bad_servers_do_not_hold_a_session(lab: Lab) -> None:
    """MCP-03."""
    servers: tuple[JsonObject, ...] = (
        _server("dead", sys.executable, "-c", "raise SystemExit(1)"),
        _server("slow", sys.executable, "-c", "import time; time.sleep(60)"),
        _server("missing", "/nonexistent/server"),
        {"type": "carrier-pigeon", "name": "odd", "url": "pigeon://loft"},
    )
    with lab.agent() as agent:
        agent.new_session()  # the first one may take longer, for reasons of its own
        for server in servers:
            _starts(agent, lab, server)
        begin(lab, agent, agent.new_session(mcpServers=list(servers)), said("fine")).completed()


def _starts(agent: LabAgent, lab: Lab, server: JsonObject) -> None:
    request_id = agent.request("session/new", {"cwd": str(lab.cwd), "mcpServers": [server]})
    frame = agent.response(request_id, seconds=_START_SECONDS)
    require("result" in frame, f"session/new with the server {shown(server)}: {shown(body_of(frame))}")


def they_die_with_their_session(lab: Lab) -> None:
    """MCP-04."""
    for end in ("session/close", "the end of input", "kill -9"):
        with lab.agent() as agent:
            pids = lab.root / f"pids of {end.replace('/', ' ')}"
            session = agent.new_session(mcpServers=[_echo(pids)])
            ran(lab, agent, session, said("done"))
            provoked(pids.exists(), "the agent did not start the server")
            servers = {int(pid) for pid in pids.read_text(encoding="utf-8").split()}
            agent.children()
            can_close = agent.advertises("sessionCapabilities.close")
            if end == "session/close":
                agent.response(agent.request("session/close", {"sessionId": session}))
            elif end == "the end of input":
                agent.close_stdin()
            else:
                agent.end_now()
            applies = can_close or end != "session/close"
            left = gone(servers, agent, seconds=5.0 * applies)
            require(not (left and applies), f"five seconds after {end} an MCP server is alive")


CHECKS: dict[str, Check] = {
    "MCP-01": their_tools_are_offered,
    "MCP-02": http_only_when_advertised,
    "MCP-03": bad_servers_do_not_hold_a_session,
    "MCP-04": they_die_with_their_session,
}
