"""The answer to `initialize` (acp.md §2).

May not know: pydantic, sessions, the network — it is imported before anything heavy, because editors kill an agent
that is slow to greet. Invariant: capabilities advertised = capabilities implemented, no more, no less.
"""

from typing import Any, NamedTuple, cast

from acp_bridge import VERSION
from acp_bridge.config_file import login_command

PROTOCOL_VERSION = 1
AGENT_INFO = {"name": "dsh-acp-agent", "title": "DSH coding agent", "version": VERSION}
AGENT_CAPABILITIES: dict[str, Any] = {
    "loadSession": True,
    "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {}},
}
API_KEY_METHOD = "api-key"
LOGIN_METHOD = "login"


class SignIn(NamedTuple):
    """How a person gives the agent the key of the chosen `provider`.

    `variable` names where the key comes from (None: the provider needs none); `command` starts this agent again, with
    its own flags and an absolute program; `environment` is what a terminal needs to know of ours, without secrets.
    """

    provider: str
    variable: str | None
    command: tuple[str, ...]
    environment: dict[str, str]


def version_problem(params: dict[str, Any]) -> str | None:
    """What is wrong with `protocolVersion`, None when it can be answered.

    An int, an integral float or a string counts as a version; every one is answered with 1.
    """
    version = params.get("protocolVersion")
    if isinstance(version, bool) or not (isinstance(version, int | str) or _integral(version)):
        return f"protocolVersion must be an integer, not {version!r:.60}"
    return None


def _integral(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def auth_methods(sign_in: SignIn, params: dict[str, Any]) -> list[dict[str, Any]]:
    """The methods to sign in that the sender of these `initialize` params can use; none when no key is needed.

    A terminal method goes to a client with `auth.terminal`, the whole command line to one whose `_meta` asks for it.
    """
    if sign_in.variable is None:
        return []
    methods: list[dict[str, Any]] = [
        {
            "id": API_KEY_METHOD,
            "name": "API key",
            "description": f"Run `{login_command(sign_in.provider)}` in a terminal, or set {sign_in.variable} in the "
            "environment that your editor gives to the agent.",
        }
    ]
    if _is_true(params, "clientCapabilities", "auth", "terminal"):
        method: dict[str, Any] = {
            "type": "terminal",
            "id": LOGIN_METHOD,
            "name": "Log in",
            "description": f"Asks for the key of {sign_in.provider} in a terminal, checks it and keeps it.",
            "args": ["login"],
        }
        if _is_true(params, "clientCapabilities", "_meta", "terminal-auth"):
            program, *arguments = sign_in.command
            method["_meta"] = {
                "terminal-auth": {
                    "command": program,
                    "args": [*arguments, "login"],
                    "env": sign_in.environment,
                    "label": login_command(sign_in.provider),
                }
            }
        methods.append(method)
    return methods


def _is_true(params: dict[str, Any], *path: str) -> bool:
    value: Any = params
    for name in path:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value is True


def initialize_result(sign_in: SignIn, params: dict[str, Any], *, fork: bool, images: bool) -> dict[str, Any]:
    """`InitializeResponse` to these `params`.

    `fork`: the unstable `session/fork` is switched on. `images`: some model of the catalogue takes images.
    """
    sessions = AGENT_CAPABILITIES["sessionCapabilities"]
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": AGENT_INFO,
        "agentCapabilities": {
            **AGENT_CAPABILITIES,
            "promptCapabilities": {**AGENT_CAPABILITIES["promptCapabilities"], "image": images},
            "sessionCapabilities": {**sessions, "fork": {}} if fork else sessions,
            # of a provider that needs no key nobody can be signed out
            **({} if sign_in.variable is None else {"auth": {"logout": {}}}),
        },
        "authMethods": auth_methods(sign_in, params),
    }
