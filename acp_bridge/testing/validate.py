"""The official referee: every frame that the agent wrote fits the protocol's definitions (contract snapshots.md §4).

May not know: the agent under test. Invariant: a definition is chosen by method — for a response by the request that it
answers — and no key outside `_meta` stands where the schema names none; what could not be checked stands in `skipped`.

The schema is read from `ACP_SCHEMA`, else `$DSH_SHARED/acp/schema-v1.json`, else where the caller says; it needs
`jsonschema`. The models are those of `agent-client-protocol`. Neither is part of this project.
"""

import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from acp_bridge.testing.editor import Entry
from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode

RESPONSES: Mapping[str, str] = {
    "initialize": "InitializeResponse",
    "authenticate": "AuthenticateResponse",
    "logout": "LogoutResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/delete": "DeleteSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/close": "CloseSessionResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
    "session/prompt": "PromptResponse",
}
REQUESTS: Mapping[str, str] = {
    "session/request_permission": "RequestPermissionRequest",
    "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest",
    "terminal/create": "CreateTerminalRequest",
    "terminal/output": "TerminalOutputRequest",
    "terminal/release": "ReleaseTerminalRequest",
    "terminal/wait_for_exit": "WaitForTerminalExitRequest",
    "terminal/kill": "KillTerminalRequest",
    "elicitation/create": "CreateElicitationRequest",
}
NOTIFICATIONS: Mapping[str, str] = {
    "session/update": "SessionNotification",
    "elicitation/complete": "CompleteElicitationNotification",
    "$/cancel_request": "CancelRequestNotification",
}


class Referee:
    """Checks values against definitions by name. `skipped` says which check could not be made, and why."""

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        schema: Path | None = None,
        load_module: Callable[[str], Any] = importlib.import_module,
    ) -> None:
        self.skipped: list[str] = []
        self._validators: dict[str, Any] = {}
        self._definitions: JsonObject = {}
        self._jsonschema: Any = self._load("jsonschema", load_module)
        self._models: Any = self._load("acp.schema", load_module)
        path = _schema_path(environment, schema)
        if path is None:
            self.skipped.append("official schema: set ACP_SCHEMA to its path")
        elif self._jsonschema is not None:
            self._definitions = json.loads(path.read_text(encoding="utf-8"))["$defs"]

    def _load(self, name: str, load_module: Callable[[str], Any]) -> Any:
        try:
            return load_module(name)
        except ImportError:
            self.skipped.append(f"{name} is not installed")
            return None

    def violations(self, entries: Iterable[Entry]) -> list[str]:
        """What is wrong with the agent's frames, one line each."""
        asked: dict[str, str] = {}
        found: list[str] = []
        for entry in entries:
            frame = entry.frame
            if entry.sender == "client":
                if "method" in frame and "id" in frame:
                    asked[encode(frame["id"])] = frame["method"]
            else:
                found += [f"{line} <- {encode(frame)[:300]}" for line in self._check(frame, asked)]
        return found

    def _check(self, frame: JsonObject, asked: Mapping[str, str]) -> Iterator[str]:
        if frame.get("jsonrpc") != "2.0":
            yield 'jsonrpc is not "2.0"'
        if "method" not in frame:
            yield from self._check_response(frame, asked)
            return
        method: str = frame["method"]
        name = (REQUESTS if "id" in frame else NOTIFICATIONS).get(method)
        if name is not None:
            yield from self.check_value(name, frame.get("params", {}))
        elif not method.startswith(("_", "$/")):
            yield f"{method} is no {'request' if 'id' in frame else 'notification'} of an agent"

    def _check_response(self, frame: JsonObject, asked: Mapping[str, str]) -> Iterator[str]:
        if ("result" in frame) == ("error" in frame):
            yield "a response needs either result or error"
        elif "error" in frame:
            yield from _check_error(frame["error"])
        elif (name := RESPONSES.get(asked.get(encode(frame.get("id")), ""))) is not None:
            yield from self.check_value(name, frame["result"])
        elif as_object(frame["result"]) is None:
            yield "a result is always an object"

    def check_value(self, name: str, value: Any) -> Iterator[str]:
        """The violations of the definition `name`, e.g. `PromptResponse`."""
        if name in self._definitions:
            yield from self._check_schema(name, value)
        model = getattr(self._models, name, None)
        if model is not None:
            try:
                _checks(model)(value)
            except ValueError as error:
                yield f"{name} (official model): {' '.join(str(error).split())[:400]}"

    def _check_schema(self, name: str, value: Any) -> Iterator[str]:
        schema: JsonObject = {"$ref": f"#/$defs/{name}"}
        errors = list(self._validator(schema).iter_errors(value))
        if errors:
            worst = self._jsonschema.exceptions.best_match(errors)
            yield f"{name} (official schema): {worst.json_path}: {worst.message[:300]}"
        else:
            for key in self._unnamed(schema, value, "$"):
                yield f"{name}: the official schema names no {key}"

    def _validator(self, schema: JsonObject) -> Any:
        key = encode(schema)
        if key not in self._validators:
            self._validators[key] = self._jsonschema.Draft202012Validator({**schema, "$defs": self._definitions})
        return self._validators[key]

    def _unnamed(self, schema: JsonObject, value: Any, path: str) -> Iterator[str]:
        """Paths of keys that no fitting branch of the schema names."""
        branches = list(self._fitting(schema, value))
        if (items := as_list(value)) is not None:
            nothing: JsonObject = {}
            inner = next((branch["items"] for branch in branches if "items" in branch), nothing)
            for index, item in enumerate(items):
                yield from self._unnamed(inner, item, f"{path}[{index}]")
        table = as_object(value)
        named: JsonObject = {}
        for branch in branches:
            named = {**branch.get("properties", {}), **named}
        if table is None or not named or any(branch.get("additionalProperties") for branch in branches):
            return
        for key, item in table.items():
            if key == "_meta":
                continue
            if key in named:
                yield from self._unnamed(named[key], item, f"{path}.{key}")
            else:
                yield f"{path}.{key}"

    def _fitting(self, schema: JsonObject, value: Any) -> Iterator[JsonObject]:
        """`schema` and every subschema that speaks about the same value; of alternatives those that it fits."""
        while "$ref" in schema:
            schema = self._definitions[schema["$ref"].rsplit("/", maxsplit=1)[-1]]
        yield schema
        for part in schema.get("allOf", ()):
            yield from self._fitting(part, value)
        for part in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
            if self._validator(part).is_valid(value):
                yield from self._fitting(part, value)


def _schema_path(environment: Mapping[str, str], given: Path | None) -> Path | None:
    shared = environment.get("DSH_SHARED")
    candidates = [environment.get("ACP_SCHEMA"), f"{shared}/acp/schema-v1.json" if shared else None, given]
    return next((Path(path) for path in candidates if path and Path(path).exists()), None)


def _checks(model: Any) -> Callable[[Any], Any]:
    """What raises `ValueError` for a value that is none of `model`."""
    if hasattr(model, "model_validate"):
        return model.model_validate
    # a union of models; what they are made of is there when they are
    return importlib.import_module("pydantic").TypeAdapter(model).validate_python


def _check_error(error: Any) -> Iterator[str]:
    table = as_object(error) or {}
    if type(table.get("code")) is not int or not isinstance(table.get("message"), str):
        yield "an error needs an integer code and a message"
    if "data" in table and as_object(table["data"]) is None:
        yield "error data is absent or an object"
