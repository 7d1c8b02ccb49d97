"""What the servers of one session share.

May not know: any server, the `mcp` package. Invariant: plain references; nothing is made here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from agent_loop.mcp.seam import Limits
from agent_loop.tools.registry import ToolRegistry
from bash_exec.secrets import SecretRegistry
from bash_exec.service import Services


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`tell(name, problem)` is called for each server that is lost; each writes a log of its own below `log_root`."""

    agent_id: str
    directory: str
    tools: ToolRegistry
    services: Services
    secrets: SecretRegistry
    log_root: str
    limits: Limits
    tell: Callable[[str, str], None]
