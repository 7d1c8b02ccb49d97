"""The project's own configuration, `.dsh-acp-agent.toml`: what a cloned repository may say about a session.

May not know: models, sessions. Invariant: only fields that are marked `IN_PROJECT` are taken, everything else is
refused by name; whatever stands in the file, it never fails a session, and nothing but a regular file is read.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from acp_bridge.config_file import project_file
from acp_bridge.settings import IN_PROJECT, Config, merged, nearest, problems_of

MAX_BYTES: Final = 64 * 1024
_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """`config` with what the file at `path` may change; `given` the keys that it did set.

    `refused` are the keys that no project can set, `problems` says what else could not be used. All dotted.
    """

    path: str
    config: Config
    given: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def notices(self) -> list[dict[str, Any]]:
        """What the session's user is told: the data of `session/notice`."""
        told = (
            ("The project's configuration sets what no project can set", _listed(self.refused)),
            ("The project's configuration cannot be used as it is", _listed(self.problems, " · ")),
        )
        return [
            {"severity": "warning", "title": title, "description": f"{self.path}: ignored: {what}"}
            for title, what in told
            if what
        ]


def project_config(cwd: str, config: Config) -> ProjectConfig | None:
    """The configuration of a session in `cwd`, over that of the user; None when the project has no file."""
    path = project_file(cwd)
    if path is None:
        return None
    import tomllib  # noqa: PLC0415 - most projects have no file

    try:
        table = tomllib.loads(_text(path))
    except (OSError, ValueError) as error:
        return ProjectConfig(path, config, problems=(getattr(error, "strerror", None) or str(error),))
    given: list[str] = []
    refused: list[str] = []
    problems: list[str] = []
    for key, value, verdict in _judged(Config, table, ""):
        match verdict:
            case "taken":
                config, wrong = _changed(config, key, value)
                problems += wrong
                given += [] if wrong else [key]
            case "refused":
                refused.append(key)
            case _:
                problems.append(f"{key}: {verdict}")
    return ProjectConfig(path, config, tuple(given), tuple(refused), tuple(problems))


def _text(path: str) -> str:
    # a link could show a file that the project cannot read itself, a pipe would never end
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES // 1024} KiB")
    return content.decode()


def _judged(model: type[BaseModel], table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any, str]]:
    """(dotted key, value, `taken`, `refused` or what is wrong) for everything in the table."""
    for name, value in table.items():
        key, field = f"{prefix}{name}", model.model_fields.get(name)
        if field is None:
            yield key, value, f"there is no such setting{nearest(name, model.model_fields)}"
        elif IN_PROJECT in field.metadata:
            yield key, value, "taken"
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel) and isinstance(value, dict):
            yield from _judged(field.annotation, cast("dict[str, Any]", value), f"{key}.")
        else:
            yield from ((leaf, value, "refused") for leaf in _leaves(key, value))


def _leaves(key: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _leaves(f"{key}.{name}", inner)
    else:
        yield key


def _changed(config: Config, key: str, value: Any) -> tuple[Config, list[str]]:
    table: Any = value
    for name in reversed(key.split(".")):
        table = {name: table}
    try:
        return merged(config, table), []
    except ValidationError as error:
        return config, list(problems_of(error, Config))


def _listed(names: tuple[str, ...], between: str = ", ") -> str:
    more = len(names) - _NAMED
    return between.join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
