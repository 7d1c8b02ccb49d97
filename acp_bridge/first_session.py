"""The light path's second answer: the `session/new` that most clients send right behind `initialize` (acp.md §2).

May not know: agents, logs, settings, anything that takes time to load. Invariant: what it answers is what
`methods/v1/sessions` would have answered; in every case that is not plain — a configuration file, a snapshot run, a
parameter that is odd — it answers nothing and leaves the bytes to the peer.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from acp_bridge.catalogue import Choice, Offer, plain_catalogue
from acp_bridge.config_file import BASE_URL, Flags, RawConfig, project_file, split_model, wanted_model
from acp_bridge.permission.modes import ASK, MODE_IDS, MODES, mode_state
from acp_bridge.translate.v1.options import config_options

_LISTS = ("mcpServers", "additionalDirectories")


class OpenedSession(NamedTuple):
    """A session that the client knows already; `params` are those of its `session/new`."""

    session_id: str
    params: dict[str, Any]


def plain_offer(raw: RawConfig, flags: Flags, environment: Mapping[str, str]) -> Offer | None:
    """What sessions offer and start with, when no setting needs to be read to know that one opens; else None."""
    if raw.table or raw.problem or any(name.startswith("DSH_SNAPSHOT") for name in environment):
        return None
    url = environment.get("DEEPSEEK_BASE_URL")
    if url and not re.match(BASE_URL, url):
        return None
    mode = flags.permission_mode or environment.get("DSH_PERMISSION_MODE") or ASK
    if mode not in MODE_IDS:
        return None
    _provider, model = split_model(wanted_model({}, flags, environment), {})
    catalogue = plain_catalogue(model)
    chosen = next((row for row in catalogue.rows if row.id == model), catalogue.rows[0])
    return Offer(MODES, catalogue, Choice(mode, chosen.value))


def open_plainly(params: dict[str, Any], offer: Offer) -> tuple[OpenedSession, dict[str, Any]] | None:
    """The session and the result that tells of it; None when the params are not plainly good."""
    cwd: object = params.get("cwd")
    if not isinstance(cwd, str) or not _is_directory(cwd) or project_file(cwd) is not None:
        return None
    others = {name: value for name, value in params.items() if name not in ("cwd", "_meta")}
    if not all(name in _LISTS and isinstance(value, list | None) for name, value in others.items()):
        return None
    if not all(map(_is_directory, params.get("additionalDirectories") or ())):
        return None
    import uuid  # noqa: PLC0415 - only who gets this far pays for it

    session_id = str(uuid.uuid4())
    return OpenedSession(session_id, params), {
        "sessionId": session_id,
        "modes": mode_state(offer.default.mode),
        "configOptions": config_options(offer, offer.default),
    }


def _is_directory(path: object) -> bool:
    return isinstance(path, str) and os.path.isabs(path) and os.path.isdir(path)
