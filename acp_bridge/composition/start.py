"""What the light path has found out before the heavy one starts.

May not know: how it is used. Invariant: plain data.
"""

from typing import NamedTuple

from acp_bridge.handshake import Greeting
from acp_bridge.logs import Log
from acp_bridge.methods.v1.initialize import SignIn
from acp_bridge.rpc.stdio import Stdio
from acp_bridge.settings import Settings
from bash_exec.secrets import SecretRegistry


class Start(NamedTuple):
    """What the light path has found out. `stored`: keys that `login` put into its file."""

    settings: Settings
    problem: str | None
    environment: dict[str, str]
    key_variables: list[str]
    stored: dict[str, str]
    sign_in: SignIn
    stdio: Stdio
    greeting: Greeting
    parent: int
    log: Log
    secrets: SecretRegistry
    fork: bool
    images: bool
    signals: list[int]
