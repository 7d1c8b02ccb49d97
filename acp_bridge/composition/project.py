"""What a session in a directory can choose, and what it starts with: the user's configuration and the project's.

May not know: how a notice is shown. Invariant: a project chooses among what the user has configured, never more; what
the command line or the environment says wins over the project.
"""

from acp_bridge.catalogue import Offer
from acp_bridge.logs import Log
from acp_bridge.project_config import project_config
from acp_bridge.settings import Config, Settings
from agent_loop.vocabulary import JsonObject


def session_config(config: Config, cwd: str) -> Config:
    """The configuration of a session in `cwd`."""
    project = project_config(cwd, config)
    return project.config if project else config


def session_offer(base: Offer, cwd: str, *, settings: Settings, log: Log) -> tuple[Offer, list[JsonObject]]:
    """The offer of a session in `cwd`, and the notices for its user."""
    default, notices = base.default, list[JsonObject]()
    project = project_config(cwd, settings.config)
    if project is not None:
        notices += project.notices()
        if "model" in project.given and not settings.model_fixed:
            row = base.catalogue.named(str(project.config.model))
            if row is None:
                notices.append(_unknown(f"{project.path}: the model {project.config.model!r}", default.model))
            else:
                if row.provider != base.row(base.default).provider:
                    notices.append(_elsewhere(row.value, project.path))
                default = default._replace(model=row.value)
        if "thinking" in project.given:
            default = default._replace(level=project.config.thinking)
    offer = base._replace(default=default)
    if default.level is not None and default.level not in offer.row(default).levels:
        notices.append(_unknown(f"The thinking level {default.level!r}", str(offer.level(default) or "none")))
    for notice in notices:
        log.warning("configuration", cwd=cwd, problem=f"{notice['title']}. {notice['description']}")
    return offer, notices


def _elsewhere(model: str, path: str) -> JsonObject:
    # a repository may not decide unseen to whom the conversation goes
    return {
        "severity": "info",
        "title": f"This project chose the model {model}, of another provider than yours",
        "description": f"{path}. Another one can be chosen at any time.",
    }


def _unknown(what: str, used: str) -> JsonObject:
    return {
        "severity": "warning",
        "title": f"{what} is not offered",
        "description": f"The session starts with {used}.",
    }
