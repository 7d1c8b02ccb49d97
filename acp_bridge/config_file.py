"""The raw configuration: where the file is, its table, and whose key is wanted. The light half of the settings.

May not know: what a setting means, pydantic — `initialize` names the key variable before anything heavy is imported.
Invariant: nothing here raises for odd content; a broken file is reported once a session is wanted.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

APP = "dsh-acp-agent"
PROJECT_FILE = ".dsh-acp-agent.toml"
DEEPSEEK = "deepseek"
DEEPSEEK_KEY = "DEEPSEEK_API_KEY"
BASE_URL = r"^https?://."
"""What an address of a provider looks like."""


class Flags(NamedTuple):
    """What the command line said; None = not said."""

    config: str | None = None
    model: str | None = None
    permission_mode: str | None = None


class RawConfig(NamedTuple):
    """The table of `path`; `problem` says why it could not be read (the table is then empty)."""

    path: str
    table: dict[str, Any]
    problem: str | None = None


def config_path(flags: Flags, environment: Mapping[str, str]) -> str:
    """`--config`, else `DSH_CONFIG`, else `config.toml` in the platform's user config directory."""
    if chosen := flags.config or environment.get("DSH_CONFIG"):
        return os.path.abspath(chosen)
    import platformdirs  # noqa: PLC0415 - 10 ms that a snapshot run, which names its file, need not pay

    return os.path.join(platformdirs.user_config_dir(APP), "config.toml")


def read_config(flags: Flags, environment: Mapping[str, str]) -> RawConfig:
    """Read the file; an absent one is an empty table, unless it was asked for by name."""
    path = config_path(flags, environment)
    try:
        with open(path, "rb") as file:
            import tomllib  # noqa: PLC0415 - most have no file

            return RawConfig(path, tomllib.load(file))
    except FileNotFoundError:
        asked = flags.config or environment.get("DSH_CONFIG")
        return RawConfig(path, {}, "the file does not exist" if asked else None)
    except (OSError, ValueError) as error:
        return RawConfig(path, {}, str(error))


def project_file(cwd: str) -> str | None:
    """The project's own configuration: the nearest file from `cwd` up to the root of its repository; None without one.

    Outside a repository only `cwd` itself counts, so that nobody sets anything by leaving a file in `/tmp`.
    """
    folders = [cwd]
    while not os.path.exists(os.path.join(folders[-1], ".git")):
        above = os.path.dirname(folders[-1])
        if above == folders[-1]:
            folders = [cwd]
            break
        folders.append(above)
    paths = (os.path.join(folder, PROJECT_FILE) for folder in folders)
    return next((path for path in paths if os.path.lexists(path)), None)


def _providers(table: Mapping[str, Any]) -> dict[str, Any]:
    providers: object = table.get("providers")
    return cast("dict[str, Any]", providers) if isinstance(providers, dict) else {}


def _text(provider: object, field: str) -> str | None:
    value: object = cast("dict[str, Any]", provider).get(field) if isinstance(provider, dict) else None
    return value if isinstance(value, str) and value else None


def key_variables(table: Mapping[str, Any]) -> list[str]:
    """Every variable that may hold a key, whatever else is wrong with the table: no child may see one."""
    return [DEEPSEEK_KEY, *filter(None, (_text(row, "key_variable") for row in _providers(table).values()))]


def configured_keys(table: Mapping[str, Any]) -> dict[str, str]:
    """Every key that stands in the table itself, by its provider's name."""
    return {name: key for name, row in _providers(table).items() if (key := _text(row, "key"))}


def allowed_variables(table: Mapping[str, Any]) -> list[str]:
    """The names that the table gives back to commands, whatever else is wrong with it."""
    given: object = table.get("env")
    names: object = cast("dict[str, Any]", given).get("allow") if isinstance(given, dict) else None
    return [name for name in cast("list[Any]", names) if isinstance(name, str)] if isinstance(names, list) else []


def fork_wanted(table: Mapping[str, Any]) -> bool:
    """`unstable.fork`, as `initialize` must know it; whether the value can be used is seen later."""
    unstable: object = table.get("unstable")
    return isinstance(unstable, dict) and cast("dict[str, Any]", unstable).get("fork") is True


def images_taken(table: Mapping[str, Any]) -> bool:
    """Whether some configured model takes images, as `initialize` must know it; the built-in ones take none."""
    rows = (cast("dict[str, Any]", row).get("models") for row in _providers(table).values() if isinstance(row, dict))
    models = (model for given in rows if isinstance(given, list) for model in cast("list[Any]", given))
    return any(isinstance(model, dict) and cast("dict[str, Any]", model).get("images") is True for model in models)


def split_model(name: object, providers: Mapping[str, Any]) -> tuple[str, str | None]:
    """`provider/model` or a bare provider or a bare model (DeepSeek's) → (provider, model or None = its first)."""
    if not isinstance(name, str):
        return DEEPSEEK, None
    if name in providers:
        return name, None
    head, slash, tail = name.partition("/")
    if slash and (head in providers or head == DEEPSEEK):
        return head, tail
    return DEEPSEEK, name


def wanted_model(table: Mapping[str, Any], flags: Flags, environment: Mapping[str, str]) -> object:
    """The model asked for: flag, then `DSH_MODEL`, then the file; None = the default."""
    return flags.model or environment.get("DSH_MODEL") or table.get("model")


def chosen_provider(table: Mapping[str, Any], flags: Flags, environment: Mapping[str, str]) -> str:
    """The provider whose model is asked for."""
    return split_model(wanted_model(table, flags, environment), _providers(table))[0]


def key_variable(table: Mapping[str, Any], provider: str) -> str | None:
    """The variable of a provider's key; None when it needs none."""
    return DEEPSEEK_KEY if provider == DEEPSEEK else _text(_providers(table).get(provider), "key_variable")


def login_command(provider: str) -> str:
    """What a person types into a terminal to give the agent a provider's key."""
    return f"{APP} login" if provider == DEEPSEEK else f"{APP} login --provider {provider}"


def keys_are_wanted(environment: Mapping[str, str]) -> bool:
    """False in a replay, where nobody has to sign in; `DSH_SNAPSHOT_AUTH` plays that as well."""
    return environment.get("DSH_SNAPSHOT") != "replay" or bool(environment.get("DSH_SNAPSHOT_AUTH"))
