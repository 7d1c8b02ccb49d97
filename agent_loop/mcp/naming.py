"""The names that the model calls: `server__tool`.

May not know: servers, schemas. Invariant: a name has 1 to 64 characters of `[a-zA-Z0-9_-]`, which is what providers
take, and the same names come out of the same names in the same order.
"""

import hashlib
import re
from collections.abc import Callable

LONGEST = 64
_SEPARATOR = "__"
_DIGEST = 8
_OTHER = re.compile(r"[^a-zA-Z0-9_-]+")


def server_prefix(name: str, is_taken: Callable[[str], bool]) -> str:
    """What stands before the tools of the server `name`: free of what other servers have."""
    plain = _OTHER.sub("_", name).strip("_")[: LONGEST // 2] or "mcp"
    prefix, number = plain, 1
    while is_taken(prefix):
        number += 1
        prefix = f"{plain}_{number}"
    return prefix


def tool_name(prefix: str, tool: str, is_taken: Callable[[str], bool]) -> str:
    """The name of a server's tool. One that is too long, or that two tools would have, ends with a digest."""
    plain = f"{prefix}{_SEPARATOR}{_OTHER.sub('_', tool) or '_'}"
    name, number = plain, 0
    while len(name) > LONGEST or is_taken(name):
        digest = hashlib.sha256(f"{tool}\0{number}".encode()).hexdigest()[:_DIGEST]
        name, number = f"{plain[: LONGEST - _DIGEST - 1]}_{digest}", number + 1
    return name
