"""The rules of initialize and authentication (sections B and C).

May not know: prompts beyond one that runs a tool. Invariant: each check speaks about one rule, by its id in the
manifest.
"""

import uuid
from typing import Any

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab, initialize_params
from acp_bridge.testing.conformance.model import optional
from acp_bridge.testing.conformance.stimulus import said, shell
from acp_bridge.testing.conformance.turns import Check, begin, body_of, line, provoked, require, shown, stop_reason
from acp_bridge.testing.conformance.verdicts import Broken
from acp_bridge.testing.editor import EditorError
from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode

_NO_METHOD = -32601
_INVALID = -32602
_AUTH_REQUIRED = -32000
_START_SECONDS = 2.0
_TRIES = 3
_NOTHING: tuple[tuple[str, Any], ...] = (
    ("absent", None),
    ("empty", {}),
    (
        "null members",
        {"fs": None, "terminal": None, "elicitation": None, "session": None, "auth": None, "_meta": None},
    ),
)
_GATED_METHODS = ("fs/", "terminal/", "elicitation/")
_GATED_UPDATES = {"notice", "compaction_update", "compaction_summary_chunk", "plan_update", "plan_removed"}
_KEYLESS = {"OPENAI_API_KEY": "", "DEEPSEEK_API_KEY": ""}
_METHOD_KEYS: dict[str | None, set[str]] = {
    None: {"id", "name", "description", "_meta"},
    "agent": {"id", "name", "description", "_meta", "type"},
    "terminal": {"id", "name", "description", "_meta", "type", "args", "env"},
}


def initialize_names_version_and_capabilities(lab: Lab) -> None:
    """INIT-01."""
    with lab.agent() as agent:
        version = agent.initialized["protocolVersion"]
        require(version == 1 and type(version) is int, f"version 1 was asked for, {version!r} came back")
        capabilities = agent.initialized.get("agentCapabilities")
        require(as_object(capabilities) is not None, f"agentCapabilities is {shown(capabilities)}")


def other_versions_get_a_version(lab: Lab) -> None:
    """INIT-02."""
    for asked in (65535, 0, 2):
        with lab.agent(initialize=False) as agent:
            result = agent.call("initialize", {**initialize_params(), "protocolVersion": asked})
            version = result.get("protocolVersion")
            is_number = type(version) is int and version != 65535
            require(is_number, f"version {asked} was asked for: protocolVersion {shown(version)} came back")


def odd_versions_do_not_kill_the_handshake(lab: Lab) -> None:
    """INIT-03."""
    for odd in ("1", 1.0):
        with lab.agent(initialize=False) as agent:
            frame = agent.response(agent.request("initialize", {**initialize_params(), "protocolVersion": odd}))
            code = (as_object(frame.get("error")) or {}).get("code")
            require("result" in frame or code == _INVALID, f"version {odd!r}: {shown(body_of(frame))}")
            if "error" in frame:
                agent.call("initialize", initialize_params())


def the_agent_introduces_itself(lab: Lab) -> None:
    """INIT-04."""
    with lab.agent() as agent:
        info = as_object(agent.initialized.get("agentInfo")) or {}
        require(info.get("name") and info.get("version"), f"agentInfo is {shown(info)}")


def nothing_is_used_that_was_not_advertised(lab: Lab) -> None:
    """INIT-05."""
    for what, capabilities in _NOTHING:
        with lab.agent(initialize=False) as agent:
            given = {} if what == "absent" else {"clientCapabilities": capabilities}
            agent.initialized = agent.call("initialize", {"protocolVersion": 1, **given})
            opened = agent.open_session()
            for option in as_list(opened.get("configOptions")) or []:
                require(option.get("type") != "boolean", f"capabilities {what}: the boolean option {shown(option)}")
            begin(lab, agent, opened["sessionId"], optional(shell("echo hello")), said("done")).end()
            for frame in agent.frames:
                method, update = str(frame.get("method", "")), (as_object(frame.get("params")) or {}).get("update")
                kind = (as_object(update) or {}).get("sessionUpdate")
                is_gated = method.startswith(_GATED_METHODS) or kind in _GATED_UPDATES
                require(not is_gated, f"capabilities {what}: the agent sent {shown(frame)}")


def what_is_advertised_exists(lab: Lab) -> None:
    """INIT-06."""
    with lab.agent() as agent:
        opened = agent.open_session()
        session: JsonObject = {"sessionId": opened["sessionId"]}
        place: JsonObject = {"cwd": str(lab.cwd), "mcpServers": []}
        modes = as_object(opened.get("modes"))
        options = as_list(opened.get("configOptions"))
        offered: list[tuple[Any, str, JsonObject]] = [
            (modes, "session/set_mode", {**session, "modeId": (modes or {}).get("currentModeId")}),
            (options, "session/set_config_option", {**session, **_same_value(options)}),
            (agent.advertises("sessionCapabilities.list"), "session/list", {}),
            (agent.advertises("loadSession"), "session/load", {**session, **place}),
            (agent.advertises("sessionCapabilities.resume"), "session/resume", {**session, **place}),
            (agent.advertises("sessionCapabilities.close"), "session/close", session),
            (agent.advertises("sessionCapabilities.delete"), "session/delete", session),
            (agent.initialized.get("authMethods"), "authenticate", {"methodId": "nobody"}),
            (agent.advertises("auth.logout"), "logout", {}),
        ]
        for is_offered, method, params in offered:
            if is_offered:
                frame = agent.response(agent.request(method, params))
                code = (as_object(frame.get("error")) or {}).get("code")
                require(code != _NO_METHOD, f"{method} is advertised, and unknown: {shown(body_of(frame))}")


def _same_value(options: list[Any] | None) -> JsonObject:
    option: JsonObject = options[0] if options else {}
    kind = {"type": "boolean"} if option.get("type") == "boolean" else {}
    return {"configId": option.get("id"), "value": option.get("currentValue"), **kind}


def initialize_needs_nothing(lab: Lab) -> None:
    """INIT-07."""
    blocked = lab.root / "no-directory"
    blocked.write_text("{ this is = no configuration")
    bare = {name: "" for name in lab.environment() if name != "PATH" and not name.startswith("COVERAGE_")}
    unreadable = {"HOME": str(blocked), "XDG_CONFIG_HOME": str(blocked)}
    for what, env in (("an empty environment", bare), ("no readable configuration", unreadable)):
        frame = _initialize_response(lab, what, env)
        require("result" in frame, f"with {what}: {shown(body_of(frame))}")


def _initialize_response(lab: Lab, what: str, env: dict[str, str]) -> JsonObject:
    tries = 0
    while True:
        tries += 1
        try:
            with lab.agent(initialize=False, env=env) as agent:
                return agent.response(agent.request("initialize", initialize_params()), seconds=_START_SECONDS)
        except EditorError as error:
            # a busy machine is not the agent's fault
            if tries == _TRIES:
                raise Broken(f"with {what}: {error}") from error


def early_requests_and_a_second_initialize_are_answered(lab: Lab) -> None:
    """INIT-08."""
    new: JsonObject = {"method": "session/new", "params": {"cwd": str(lab.cwd), "mcpServers": []}}
    initialize: JsonObject = {"method": "initialize", "params": initialize_params()}
    with lab.agent(initialize=False) as agent:
        frames = [{"id": "early", **new}, {"id": "start", **initialize}, {"id": "late", **new}]
        agent.write(b"".join(map(line, frames)))
        agent.response("early")
        for request_id in ("start", "late"):
            frame = agent.response(request_id)
            require("result" in frame, f"session/new, initialize, session/new in one write: {shown(body_of(frame))}")
        agent.send({"jsonrpc": "2.0", "id": "again", **initialize})
        agent.response("again")
        frame = agent.prompt(agent.response("late")["result"]["sessionId"])
        require(stop_reason(frame), f"after a second initialize a prompt got {shown(body_of(frame))}")


def auth_methods_are_sound(lab: Lab) -> None:
    """AUTH-01."""
    for auth in ({}, {"auth": {"terminal": False}}, {"auth": None}, {"auth": {"terminal": True}}):
        with lab.agent(capabilities=auth) as agent:
            methods = _methods(agent)
            ids = [encode(method.get("id")) for method in methods]
            require(len(set(ids)) == len(ids), f"two methods share an id: {shown(methods)}")
            for method in methods:
                kind = method.get("type")
                allowed = _METHOD_KEYS.get(kind)
                if allowed is None or not method.keys() <= allowed:
                    raise Broken(f"no authentication method of v1: {shown(method)}")
                may = kind != "terminal" or auth == {"auth": {"terminal": True}}
                require(may, f"a terminal method for a client with the capabilities {shown(auth)}: {shown(method)}")


def unknown_auth_methods_are_errors(lab: Lab) -> None:
    """AUTH-02."""
    with lab.agent() as agent:
        code = agent.error("authenticate", {"methodId": f"nobody-{uuid.uuid4()}"}).get("code")
        if code not in {_INVALID, _NO_METHOD}:
            lab.warn(f"the error is {code}, not {_INVALID}")


def an_authenticated_client_is_not_asked_again(lab: Lab) -> None:
    """AUTH-03."""
    with lab.agent() as agent:
        methods = [method for method in _methods(agent) if method.get("type") != "terminal"]
        provoked(methods, "there is no method to authenticate with")
        frame = agent.response(agent.request("authenticate", {"methodId": methods[0].get("id")}))
        provoked("result" in frame, f"authenticate did not succeed: {shown(body_of(frame))}")
        frame = agent.response(agent.request("session/new", {"cwd": str(lab.cwd), "mcpServers": []}))
        code = (as_object(frame.get("error")) or {}).get("code")
        require(code != _AUTH_REQUIRED, f"session/new after authenticate: {shown(body_of(frame))}")


def the_first_auth_method_works(lab: Lab) -> None:
    """AUTH-04."""
    with lab.agent(capabilities={"auth": {"terminal": True}}) as agent:
        methods = _methods(agent)
        provoked(methods, "there is no method to authenticate with")
        require(methods[0].get("type") != "terminal", f"the first method is a terminal one: {shown(methods[0])}")
        agent.call("authenticate", {"methodId": methods[0].get("id")})


def a_missing_credential_is_told_as_clients_expect(lab: Lab) -> None:
    """AUTH-05."""
    with lab.agent(env=_KEYLESS) as agent:
        frame = agent.response(agent.request("session/new", {"cwd": str(lab.cwd), "mcpServers": []}))
        if "result" in frame:
            frame = agent.prompt(frame["result"]["sessionId"])
        provoked("error" in frame, "session and prompt work without a credential")
        error = as_object(frame["error"]) or {}
        require(error.get("code") == _AUTH_REQUIRED, f"without a credential: {shown(error)}")
        says_so = "authentication required" in str(error.get("message")).lower()
        require(says_so, f'the message does not say "Authentication required": {shown(error)}')
        named = encode(error.get("data"))
        is_named = all(encode(method.get("id")) in named for method in _methods(agent))
        require("data" in error and is_named, f"the data does not name the methods: {shown(error)}")


def logout_takes_the_credential_away(lab: Lab) -> None:
    """AUTH-06."""
    with lab.agent() as agent:
        result = agent.call("logout")
        require(result.keys() <= {"_meta"}, f"logout answered {shown(result)}")
        frame = agent.response(agent.request("session/new", {"cwd": str(lab.cwd), "mcpServers": []}))
        if "result" in frame:
            frame = agent.prompt(frame["result"]["sessionId"])
        code = (as_object(frame.get("error")) or {}).get("code")
        require(code == _AUTH_REQUIRED, f"after logout: {shown(body_of(frame))}")


def _methods(agent: LabAgent) -> list[JsonObject]:
    return [as_object(method) or {} for method in as_list(agent.initialized.get("authMethods")) or []]


CHECKS: dict[str, Check] = {
    "INIT-01": initialize_names_version_and_capabilities,
    "INIT-02": other_versions_get_a_version,
    "INIT-03": odd_versions_do_not_kill_the_handshake,
    "INIT-04": the_agent_introduces_itself,
    "INIT-05": nothing_is_used_that_was_not_advertised,
    "INIT-06": what_is_advertised_exists,
    "INIT-07": initialize_needs_nothing,
    "INIT-08": early_requests_and_a_second_initialize_are_answered,
    "AUTH-01": auth_methods_are_sound,
    "AUTH-02": unknown_auth_methods_are_errors,
    "AUTH-03": an_authenticated_client_is_not_asked_again,
    "AUTH-04": the_first_auth_method_works,
    "AUTH-05": a_missing_credential_is_told_as_clients_expect,
    "AUTH-06": logout_takes_the_credential_away,
}
"""Rule id → its check."""
