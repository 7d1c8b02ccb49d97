"""The ACP v1 messages that we read, parsed once (schema-v1.json); what we write are plain dictionaries.

May not know: what is done with a message. Invariant: lenient in — unknown fields are ignored, null reads as absent —
and after parsing nobody checks a shape again.
"""

from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    StrictBool,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.alias_generators import to_camel

_Model = TypeVar("_Model", bound=BaseModel)


def _empty_list(value: object) -> object:
    return [] if value is None else value


Objects = Annotated[list[Any], BeforeValidator(_empty_list)]


class Incoming(BaseModel):
    """camelCase on the wire, snake_case here."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        defer_build=True,  # of these thirty a session reads five: the validators of the others need not be made
    )


class ClientCapabilities(Incoming):
    """What of the client's capabilities this version uses; absent, null and malformed mean "not supported"."""

    notices: bool = False
    compaction: bool = False
    boolean_options: bool = False
    read_files: bool = False
    write_files: bool = False
    terminals: bool = False
    terminal_output: bool = False
    elicitation_form: bool = False

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> "ClientCapabilities":
        """Read `initialize` params; never fails."""
        capabilities = _table(params.get("clientCapabilities"))
        session, files, meta = (_table(capabilities.get(name)) for name in ("session", "fs", "_meta"))
        return cls(
            notices=isinstance(session.get("notices"), dict),
            compaction=isinstance(session.get("compaction"), dict),
            boolean_options=isinstance(_table(session.get("configOptions")).get("boolean"), dict),
            read_files=files.get("readTextFile") is True,
            write_files=files.get("writeTextFile") is True,
            terminals=capabilities.get("terminal") is True,
            terminal_output=meta.get("terminal_output") is True,
            elicitation_form=isinstance(_table(capabilities.get("elicitation")).get("form"), dict),
        )


def _table(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class AuthenticateParams(Incoming):
    method_id: str


class LogoutParams(Incoming):
    pass


def _pairs(value: Any) -> object:
    """Some clients send a table where the protocol has a list of `{name, value}`."""
    if not isinstance(value, dict):
        return _empty_list(value)
    return [{"name": name, "value": text} for name, text in cast("dict[str, Any]", value).items()]


def _has_address(url: str) -> str:
    from urllib.parse import urlsplit  # noqa: PLC0415 - few sessions have servers at an address

    if not urlsplit(url).hostname:
        raise ValueError("has no host")
    return url


Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""What a program can be given."""


class McpVariable(Incoming):
    name: Annotated[str, Field(pattern=r"^[^=\x00]+$")]
    value: Text


class McpHeader(Incoming):
    name: Annotated[str, Field(min_length=1)]
    value: str


class McpProgram(Incoming):
    """An entry of `mcpServers` that is started (stdio)."""

    command: Annotated[Text, Field(min_length=1)]
    args: Annotated[list[Text], BeforeValidator(_empty_list)] = []
    env: Annotated[list[McpVariable], BeforeValidator(_pairs)] = []

    @property
    def environment(self) -> dict[str, str]:
        """`env` by name."""
        return {row.name: row.value for row in self.env}


class McpRemote(Incoming):
    """An entry of `mcpServers` that is connected to (http, sse)."""

    url: Annotated[str, Field(pattern=r"^https?://"), AfterValidator(_has_address)]
    headers: Annotated[list[McpHeader], BeforeValidator(_pairs)] = []

    @property
    def given_headers(self) -> dict[str, str]:
        """`headers` by name."""
        return {row.name: row.value for row in self.headers}


class NewSessionParams(Incoming):
    cwd: str
    mcp_servers: Objects = []
    additional_directories: Annotated[list[str], BeforeValidator(_empty_list)] = []


class LoadSessionParams(NewSessionParams):
    """Of `session/load`, `session/resume` and `session/fork`."""

    session_id: Annotated[str, Field(min_length=1)]


class SessionParams(Incoming):
    session_id: str


class ListSessionsParams(Incoming):
    cwd: str | None = None
    cursor: str | None = None


class SetModeParams(SessionParams):
    mode_id: str


class SetConfigOptionParams(SessionParams):
    """`value` is a string, or a bool with `type:"boolean"`; which one an option takes is seen later."""

    config_id: str
    value: str | StrictBool


class PromptParams(SessionParams):
    """`prompt` blocks stay raw: they are logged as the client sent them; `ContentBlock` checks their shape."""

    prompt: list[dict[str, Any]]


class AdvanceParams(Incoming):
    """The extension `_dsh/clock/advance` of a replay with a virtual clock; `ms` in milliseconds."""

    ms: NonNegativeInt


class Annotations(Incoming):
    """What a client says about the use of a block; shown again on a reload."""

    audience: list[Literal["user", "assistant"]] | None = None
    last_modified: str | None = None
    priority: float | None = None


def _fitting(value: object, check: ValidatorFunctionWrapHandler) -> Annotations | None:
    try:
        return check(value)
    except ValidationError:
        return None


Hints = Annotated[Annotations | None, WrapValidator(_fitting)]
"""Annotations; what does not fit reads as absent: no prompt fails for it."""


class TextContent(Incoming):
    type: Literal["text"]
    text: str


class ImageContent(Incoming):
    """`data` is base64."""

    type: Literal["image"]
    mime_type: str
    data: str
    uri: str | None = None
    annotations: Hints = None


class TextContents(Incoming):
    uri: str
    mime_type: str | None = None
    text: str


class BlobContents(Incoming):
    """`blob` is base64."""

    uri: str
    mime_type: str | None = None
    blob: str


class EmbeddedResource(Incoming):
    type: Literal["resource"]
    resource: TextContents | BlobContents
    annotations: Hints = None


class ResourceLink(Incoming):
    """`size` in bytes."""

    type: Literal["resource_link"]
    uri: str
    name: str
    mime_type: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None
    annotations: Hints = None


class PermissionOutcome(Incoming):
    """The answer to `session/request_permission`; anything else reads as no permission."""

    outcome: Literal["selected", "cancelled"]
    option_id: str | None = None


class PermissionAnswer(Incoming):
    outcome: PermissionOutcome


class TerminalCreated(Incoming):
    """The answer to `terminal/create`."""

    terminal_id: Annotated[str, Field(min_length=1)]


class TerminalExit(Incoming):
    """The answer to `terminal/wait_for_exit`: one of both, or none when the client does not know."""

    exit_code: NonNegativeInt | None = None
    signal: str | None = None


class FileText(Incoming):
    """The answer to `fs/read_text_file`."""

    content: str


class TerminalText(Incoming):
    """The answer to `terminal/output`; `exit_status` stays raw, a malformed one reads as absent."""

    output: str
    truncated: bool = False
    exit_status: Any = None


class FormResult(Incoming):
    """The answer to `elicitation/create`; `content` stays raw, whoever asked checks it."""

    action: str
    content: Any = None


class SchemaProblem(Exception):
    """Params do not fit; the text names each field and what is wanted there."""


def parse(model: type[_Model], params: object) -> _Model:
    """Validate, or raise `SchemaProblem`."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'params'}: {problem['msg']}"
            for problem in error.errors(include_url=False)
        )
        raise SchemaProblem(problems) from error
