"""`dsh-acp-agent config`: what is set, and where it comes from.

May not know: what a setting does. Invariant: every setting is there, with the value that a session in the directory
would have; of a key only whether it is set is told.
"""

import argparse
import json
import os
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pydantic import BaseModel

from acp_bridge.catalogue import DEEPSEEK_MODELS
from acp_bridge.cli.parts import Streams
from acp_bridge.config_file import DEEPSEEK, DEEPSEEK_KEY, Flags, RawConfig, read_config
from acp_bridge.credential_file import stored_entries
from acp_bridge.project_config import ProjectConfig, project_config
from acp_bridge.settings import FLAGS, VARIABLES, ProviderSettings, Settings, SettingsError, load_settings

_SET: Final = "set"
_UNSET: Final = "not set"
_PROJECT: Final = "project file"


class Row(NamedTuple):
    """One setting: its dotted key, its value as JSON, and where that comes from."""

    key: str
    value: Any
    origin: str


def run(argv: Sequence[str], environment: Mapping[str, str], streams: Streams) -> int:
    """Print the settings. Returns the exit code: 1 = they cannot be used."""
    given = _arguments(argv)
    flags = Flags(given.config, given.model, given.permission_mode)
    raw = read_config(flags, environment)
    try:
        settings = load_settings(raw, flags, environment)
    except SettingsError as error:
        streams.say(f"dsh-acp-agent config: {error}")
        return 1
    project = project_config(os.path.abspath(given.cwd), settings.config)
    rows = list(setting_rows(raw, flags, environment, settings, project))
    problems = [f"{notice['title']}. {notice['description']}" for notice in project.notices()] if project else []
    if given.json:
        files = {"file": raw.path, "project_file": project and project.path}
        settings_said = [row._asdict() for row in rows]
        streams.out.write(json.dumps({**files, "settings": settings_said, "problems": problems}, indent=2) + "\n")
        return 0
    streams.tell(f"# {raw.path}{'' if os.path.exists(raw.path) else ' (there is none)'}")
    if project:
        streams.tell(f"# {project.path}")
    for row in rows:
        streams.tell(f"{row.key} = {_text(row.value)}  # {row.origin}")
    for problem in problems:
        streams.say(problem)
    return 0


def setting_rows(
    raw: RawConfig, flags: Flags, environment: Mapping[str, str], settings: Settings, project: ProjectConfig | None
) -> Iterator[Row]:
    """Every setting with the value that counts."""
    config = project.config if project else settings.config
    chosen = {
        "model": _model(settings),
        "permission.mode": settings.permission_mode,
        "sessions.root": str(settings.sessions_root),
        f"providers.{DEEPSEEK}.base_url": settings.deepseek_url,
    }
    seen: set[str] = set()
    for key, value in _leaves(config, ""):
        seen.add(key)
        origin = _origin(key, raw, flags, environment, project)
        yield Row(key, value if origin == _PROJECT else chosen.get(key, value), origin)
    for key in chosen.keys() - seen:
        yield Row(key, chosen[key], _origin(key, raw, flags, environment, project))
    providers = {DEEPSEEK: ProviderSettings()} | config.providers
    stored = stored_entries(environment)
    for name, provider in providers.items():
        variable = DEEPSEEK_KEY if name == DEEPSEEK else provider.key_variable
        yield _key(name, provider, variable=variable, stored=stored, environment=environment)


def _key(
    name: str,
    provider: ProviderSettings,
    *,
    variable: str | None,
    stored: Container[str],
    environment: Mapping[str, str],
) -> Row:
    """Whether a provider has its key, and from where: in the order in which the agent looks."""
    key = f"providers.{name}.key"
    if variable and environment.get(variable, "").strip():
        return Row(key, _SET, f"environment {variable}")
    if name in stored:
        return Row(key, _SET, "login")
    return Row(key, _SET, "user file") if provider.key else Row(key, _UNSET, "default")


def _origin(
    key: str, raw: RawConfig, flags: Flags, environment: Mapping[str, str], project: ProjectConfig | None
) -> str:
    flag, variable = FLAGS.get(key), VARIABLES.get(key)
    if flag and getattr(flags, flag.removeprefix("--").replace("-", "_")):
        return f"flag {flag}"
    if variable and environment.get(variable):
        return f"environment {variable}"
    if project and key in project.given:
        return _PROJECT
    table: object = raw.table
    for name in key.split("."):
        table = cast("dict[str, object]", table).get(name) if isinstance(table, dict) else None
    return "default" if table is None else "user file"


def _model(settings: Settings) -> str:
    row = settings.config.providers.get(settings.provider)
    first = row.models[0].id if row and row.models else DEEPSEEK_MODELS[0].id
    return f"{settings.provider}/{settings.model or first}"


def _leaves(table: BaseModel, prefix: str) -> Iterator[tuple[str, Any]]:
    for name in type(table).model_fields:
        value: Any = getattr(table, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, f"{prefix}{name}.")
        elif isinstance(value, dict):
            for inner, row in cast("dict[str, BaseModel]", value).items():
                yield from _leaves(row, f"{prefix}{name}.{inner}.")
        elif name != "key":
            yield f"{prefix}{name}", _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        rows = cast("tuple[Any, ...]", value)
        return [row.model_dump(exclude_unset=True) if isinstance(row, BaseModel) else row for row in rows]
    return str(value) if isinstance(value, Path) else value


def _text(value: Any) -> str:
    return "–" if value is None else json.dumps(value, ensure_ascii=False)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="dsh-acp-agent config", description="Show every setting, its value, and where that comes from."
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--cwd", default=".", metavar="DIR", help="as a session in this directory has them (here)")
    parser.add_argument("--config", metavar="FILE", help="configuration file")
    parser.add_argument("--model", metavar="MODEL", help="as with this flag of the agent")
    parser.add_argument("--permission-mode", metavar="MODE", help="as with this flag of the agent")
    return parser.parse_args(argv)
