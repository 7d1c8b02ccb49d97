"""Settings: flags over environment over `config.toml` over defaults. A setting lives here and nowhere else.

Each field's description is its line in docs/configuration.md. May not know: what the settings are used for. Invariant:
a value that cannot be used is an error that names the file, the place in it and what is wanted there; it is met when a
session is wanted, never at `initialize`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    SecretStr,
    StrictBool,
    ValidationError,
    model_validator,
)

from acp_bridge.config_file import APP, BASE_URL, DEEPSEEK, Flags, RawConfig, split_model, wanted_model
from acp_bridge.runners import runs_anything


def _home_expanded(path: str) -> str:
    expanded = os.path.expanduser(path)
    if not os.path.isabs(expanded):
        raise ValueError("must be absolute or begin with ~")
    return expanded


def _beginning(command: str) -> str:
    if not _WORDS.fullmatch(command):
        raise ValueError('must be the first words of a command, such as "git push", without quotes and signs')
    return command


def _allowed_beginning(command: str) -> str:
    if runs_anything(command.split(maxsplit=1)[0]):
        raise ValueError("would allow every command: this program runs what it is told to")
    return command


_WORDS: Final = re.compile(r"[\w@%+:,./=^-]+( [\w@%+:,./=^-]+)*")
Beginning = Annotated[str, AfterValidator(_beginning)]
AllowedBeginning = Annotated[Beginning, AfterValidator(_allowed_beginning)]
BaseUrl = Annotated[str, Field(pattern=BASE_URL)]
FullPath = Annotated[str, AfterValidator(_home_expanded)]
PermissionMode = Literal["read-only", "ask", "auto-edit", "full"]
_Model = TypeVar("_Model", bound=BaseModel)


FLAGS: Final = {"model": "--model", "permission.mode": "--permission-mode"}
"""The flags of the command line, by the setting that they win over."""
VARIABLES: Final = {
    "model": "DSH_MODEL",
    "permission.mode": "DSH_PERMISSION_MODE",
    "sessions.root": "DSH_SNAPSHOT_SESSIONS_ROOT",
    f"providers.{DEEPSEEK}.base_url": "DEEPSEEK_BASE_URL",
}
"""The variables of the environment, by the setting that they win over."""


class SettingsError(Exception):
    """The configuration cannot be used."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


IN_PROJECT: Final = "in-project"
"""Marks the fields that a project's own file may set: such a field can neither run anything nor redirect a key."""
Word = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ModelSettings(_Table):
    """One model of a provider: sizes in tokens, None = unknown; `reasoning` is the echo policy of llm.md §5."""

    id: Word = Field(description="what the provider calls the model")
    name: Word | None = Field(default=None, description="what the editor calls it; the id when absent")
    context: PositiveInt | None = Field(
        default=None, description="size of the context window in tokens; shows how full it is"
    )
    max_output: PositiveInt | None = Field(default=None, description="the most that one answer can have, in tokens")
    images: StrictBool = Field(default=False, description="the model takes images")
    reasoning: Literal["echo", "echo-with-tools", "strip", "none"] = Field(
        default="none", description="which answers carry their reasoning back to the model"
    )
    merge_users: bool = Field(default=False, description="the model refuses two user messages in a row")
    efforts: tuple[Word, ...] = Field(default=(), description="values of `reasoning_effort` that the model takes")
    thinking_switch: StrictBool = Field(
        default=False, description='the endpoint takes `thinking = {type = "enabled"|"disabled"}`, as DeepSeek\'s does'
    )
    default_effort: Word | None = Field(
        default=None, description="the effort that the model takes by itself, when known"
    )
    price_input: Amount | None = Field(default=None, description="price of a million input tokens that were not cached")
    price_cached: Amount | None = Field(
        default=None, description="price of a million cached input tokens; else `price_input`"
    )
    price_output: Amount | None = Field(default=None, description="price of a million output tokens")
    currency: Word = Field(default="USD", description="currency of the prices (ISO 4217)")


class ProviderSettings(_Table):
    """One OpenAI-compatible endpoint; without `key_variable` and `key` it needs no key."""

    base_url: BaseUrl | None = Field(default=None, description="address; `/chat/completions` is added")
    key_variable: Word | None = Field(
        default=None, description="environment variable with the key; absent: it needs no key"
    )
    key: SecretStr | None = Field(default=None, description="the key itself, used when the variable is not set")
    models: tuple[ModelSettings, ...] = Field(default=(), description="its models; the first is its default")


class PermissionSettings(_Table):
    mode: PermissionMode = Field(default="ask", description="start mode of new sessions")
    allow: tuple[AllowedBeginning, ...] = Field(
        default=(), description='commands that run without a question, by their first words ("git status")'
    )
    deny: tuple[Beginning, ...] = Field(
        default=(), description='commands that never run, in any mode, by their first words ("git push")'
    )


class LoopSettings(_Table):
    ask: Literal["deny", "client"] = Field(
        default="deny",
        description='what becomes of a question in a turn that a loop started: "deny" refuses the call at once, '
        '"client" asks the editor and refuses after 60 seconds without an answer',
    )


class SessionsSettings(_Table):
    root: Path | None = Field(
        default=None, description="where session logs lie; absent: `sessions` in the user's state directory"
    )


class EnvSettings(_Table):
    allow: tuple[str, ...] = Field(default=(), description="secret-looking variables that commands may see")


class SandboxSettings(_Table):
    """What commands of `executor = "sandbox"` reach besides their session's directory."""

    network: bool = Field(default=False, description="commands share the machine's network")
    allow_read: tuple[FullPath, ...] = Field(
        default=(), description="what commands may read besides (absolute, or from `~`)"
    )
    allow_write: tuple[FullPath, ...] = Field(
        default=(), description="what commands may write besides (absolute, or from `~`)"
    )


class CompactionSettings(_Table):
    """When the model summarises a conversation, so that it goes on fitting into its context."""

    enabled: Annotated[StrictBool, IN_PROJECT] = Field(
        default=True, description="summarise older turns when the context runs full; without it `/compact` still does"
    )
    threshold: Annotated[float, IN_PROJECT] = Field(
        default=0.8, gt=0, le=1, description="share of the context window from which on older turns are summarised"
    )


class McpSettings(_Table):
    """What servers of the Model Context Protocol, which the editor names, are given."""

    timeout_seconds: Seconds = Field(default=30, description="time for a server to start and tell its tools")
    call_timeout_seconds: Seconds = Field(default=300, description="time for one call of a server's tool")


class UnstableSettings(_Table):
    """What the protocol does not hold stable yet, off unless switched on. `fork`: the method `session/fork`."""

    fork: StrictBool = Field(default=False, description="offer `session/fork`, which is not in the stable protocol")


class Config(_Table):
    """`config.toml`. `model` is `provider/model`, a provider, or a DeepSeek model."""

    model: Annotated[Word | None, IN_PROJECT] = Field(
        default=None, description="`provider/model`, a provider (its first model), or a DeepSeek model"
    )
    thinking: Annotated[Word | None, IN_PROJECT] = Field(
        default=None, description="thinking level of new sessions, one that the model offers; absent: the model's own"
    )
    executor: Literal["local", "sandbox"] = Field(default="local", description="where commands run")
    terminal: Literal["local", "client"] = Field(
        default="local",
        description='"client": foreground commands run in terminals of the editor, where it offers them; background '
        "commands stay with `executor`",
    )
    providers: dict[str, ProviderSettings] = Field(default={}, description="the endpoints of models, by name")
    permission: PermissionSettings = PermissionSettings()
    loop: LoopSettings = LoopSettings()
    sessions: SessionsSettings = SessionsSettings()
    env: EnvSettings = EnvSettings()
    sandbox: SandboxSettings = SandboxSettings()
    compaction: CompactionSettings = CompactionSettings()
    mcp: McpSettings = McpSettings()
    unstable: UnstableSettings = UnstableSettings()

    @model_validator(mode="after")
    def _keeps_the_sandbox(self) -> "Config":
        if self.executor == "sandbox" and self.terminal == "client":
            raise ValueError('terminal = "client" would run commands outside of executor = "sandbox": choose one')
        return self


class Snapshot(BaseModel):
    """The `DSH_SNAPSHOT*` variables (snapshots.md §3). `clock`: epoch ms at which a virtual clock stands still."""

    mode: Literal["replay", "record"] = Field(validation_alias="DSH_SNAPSHOT")
    file: Path = Field(validation_alias="DSH_SNAPSHOT_FILE")
    override: Path | None = Field(None, validation_alias="DSH_SNAPSHOT_OVERRIDE")
    report: Path | None = Field(None, validation_alias="DSH_SNAPSHOT_REPORT")
    clock: int | None = Field(None, validation_alias="DSH_SNAPSHOT_CLOCK")


class Settings(BaseModel):
    """Everything that can be set, checked. Paths are absolute; `model` None = the provider's first.

    `model_fixed`: the command line or the environment names the model, so no project does.
    """

    config: Config
    provider: str
    model: str | None
    model_fixed: bool
    # of the sources of these two only the variable has not been checked before: it is what an error must name
    deepseek_url: BaseUrl | None = Field(validation_alias="DEEPSEEK_BASE_URL")
    permission_mode: PermissionMode = Field(validation_alias="DSH_PERMISSION_MODE")
    sessions_root: Path
    spill_root: Path
    permissions_root: Path
    snapshot: Snapshot | None


def load_settings(raw: RawConfig, flags: Flags, environment: Mapping[str, str]) -> Settings:
    """Merge and check. Raises `SettingsError`."""
    if raw.problem:
        raise SettingsError(f"configuration file {raw.path}: {raw.problem}")
    config = _parse(Config, raw.table, f"configuration file {raw.path}")
    provider, model = split_model(wanted_model(raw.table, flags, environment), config.providers)
    for name, entry in config.providers.items():
        if name != DEEPSEEK and not (entry.base_url and entry.models):
            raise SettingsError(
                f"configuration file {raw.path}: [providers.{name}] needs base_url "
                f"and at least one [[providers.{name}.models]]"
            )
    own = config.providers.get(DEEPSEEK, ProviderSettings())
    state = platformdirs.user_state_path(APP)
    return _parse(
        Settings,
        {
            "config": config,
            "provider": provider,
            "model": model,
            "model_fixed": bool(flags.model or environment.get("DSH_MODEL")),
            "DEEPSEEK_BASE_URL": environment.get("DEEPSEEK_BASE_URL") or own.base_url,
            "DSH_PERMISSION_MODE": flags.permission_mode
            or environment.get("DSH_PERMISSION_MODE")
            or config.permission.mode,
            "sessions_root": _absolute(
                environment.get("DSH_SNAPSHOT_SESSIONS_ROOT") or config.sessions.root or state / "sessions"
            ),
            "spill_root": state / "spill",
            "permissions_root": state / "permissions",
            "snapshot": _snapshot(environment),
        },
        "environment",
    )


def _absolute(path: str | Path) -> Path:
    return Path(path).expanduser().absolute()


def _snapshot(environment: Mapping[str, str]) -> dict[str, str] | None:
    set_ones = {name: value for name, value in environment.items() if name.startswith("DSH_SNAPSHOT") and value}
    return set_ones if "DSH_SNAPSHOT" in set_ones else None


def _parse(model: type[_Model], value: object, where: str) -> _Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise SettingsError(f"{where}: {'; '.join(problems_of(error, model))}") from error


def problems_of(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    """Each problem with its dotted key; a key that there is not names the nearest that there is."""
    for problem in error.errors(include_url=False):
        place = problem["loc"]
        said = problem["msg"]
        if problem["type"] == "extra_forbidden":
            said = f"there is no such setting{nearest(str(place[-1]), _fields_at(model, place[:-1]))}"
        # two settings that do not go together are at no one place
        yield f"{'.'.join(map(str, place))}: {said}" if place else said


def nearest(wrong: str, right: Iterable[str]) -> str:
    """`; did you mean …?` for a name that is close to one of `right`, else nothing."""
    found = get_close_matches(wrong, list(right), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def merged(config: Config, table: Mapping[str, Any]) -> Config:
    """`config` with what `table` says over it. Raises `ValidationError`."""
    said = Config.model_validate(table)
    return _over(config, said)


def _over(below: _Model, above: _Model) -> _Model:
    changes: dict[str, Any] = {}
    for name in above.model_fields_set:
        value, under = getattr(above, name), getattr(below, name)
        changes[name] = _over(under, value) if isinstance(value, BaseModel) else value
    return below.model_copy(update=changes)


def _fields_at(model: type[BaseModel], place: Iterable[int | str]) -> Iterable[str]:
    """The names of the table at `place`; names of providers and numbers of rows are steps of their own."""
    at: type[BaseModel] = model
    for step in place:
        field = at.model_fields.get(str(step))
        at = table_in(field.annotation if field else None) or at
    return at.model_fields


def table_in(annotation: Any) -> type[BaseModel] | None:
    """The table that a field holds: itself, or as the rows of a list or a dictionary; None for a plain value."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(table_in, get_args(annotation))), None)
