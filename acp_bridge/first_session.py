"""The light path's second answer: the `session/new` that most clients send right behind `initialize` (acp.md §2).

May not know: agents, logs, settings, anything that takes time to load. Invariant: what it answers is what
`methods/v1/sessions` would have answered; in every case that is not plain — a configuration file, a snapshot run, a
parameter that is odd — it answers nothing and leaves the bytes to the peer.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from acp_bridge.config_file import BASE_URL, Flags, RawConfig
from acp_bridge.permission.modes import ASK, MODE_IDS, mode_state

_LISTS = ("mcpServers", "additionalDirectories")


class OpenedSession(NamedTuple):
    """A session that the client knows already; `params` are those of its `session/new`."""

    session_id: str
    params: dict[str, Any]


def plain_start_mode(raw: RawConfig, flags: Flags, environment: Mapping[str, str]) -> str | None:
    """The mode in which sessions start, when no setting needs to be read to know that one can be opened; else None."""
    if raw.table or raw.problem or any(name.startswith("DSH_SNAPSHOT") for name in environment):
        return None
    url = environment.get("DEEPSEEK_BASE_URL")
    if url and not re.match(BASE_URL, url):
        return None
    mode = flags.permission_mode or environment.get("DSH_PERMISSION_MODE") or ASK
    return mode if mode in MODE_IDS else None


def open_plainly(params: dict[str, Any], start_mode: str) -> tuple[OpenedSession, dict[str, Any]] | None:
    """The session and the result that tells of it; None when the params are not plainly good."""
    cwd: object = params.get("cwd")
    if not _is_directory(cwd):
        return None
    others = {name: value for name, value in params.items() if name not in ("cwd", "_meta")}
    if not all(name in _LISTS and isinstance(value, list | None) for name, value in others.items()):
        return None
    if not all(map(_is_directory, params.get("additionalDirectories") or ())):
        return None
    import uuid  # noqa: PLC0415 - only who gets this far pays for it

    session_id = str(uuid.uuid4())
    return OpenedSession(session_id, params), {"sessionId": session_id, "modes": mode_state(start_mode)}


def _is_directory(path: object) -> bool:
    return isinstance(path, str) and os.path.isabs(path) and os.path.isdir(path)
