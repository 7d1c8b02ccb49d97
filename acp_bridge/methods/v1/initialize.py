"""The answer to `initialize` (acp.md §2).

May not know: pydantic, sessions, the network — it is imported before anything heavy, because editors kill an agent
that is slow to greet. Invariant: capabilities advertised = capabilities implemented, no more, no less.
"""

from typing import Any

from acp_bridge import VERSION

PROTOCOL_VERSION = 1
AGENT_INFO = {"name": "dsh-acp-agent", "title": "DSH coding agent", "version": VERSION}
AGENT_CAPABILITIES: dict[str, Any] = {
    "loadSession": True,
    "promptCapabilities": {"image": False, "audio": False, "embeddedContext": False},
    "mcpCapabilities": {"http": False, "sse": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}},
}
API_KEY_METHOD = "api-key"


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


def auth_methods(key_variable: str | None) -> list[dict[str, str]]:
    """The methods to sign in: none when the provider needs no key, else the key in the environment or the config."""
    if key_variable is None:
        return []
    return [
        {
            "id": API_KEY_METHOD,
            "name": "API key",
            "description": f"Set {key_variable} in the environment that your editor gives to the agent.",
        }
    ]


def initialize_result(key_variable: str | None, *, fork: bool) -> dict[str, Any]:
    """`InitializeResponse`; `key_variable` names where the chosen provider's key comes from (None: needs none).

    `fork`: the unstable `session/fork` is switched on.
    """
    sessions = AGENT_CAPABILITIES["sessionCapabilities"]
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": AGENT_INFO,
        "agentCapabilities": {
            **AGENT_CAPABILITIES,
            "sessionCapabilities": {**sessions, "fork": {}} if fork else sessions,
        },
        "authMethods": auth_methods(key_variable),
    }
