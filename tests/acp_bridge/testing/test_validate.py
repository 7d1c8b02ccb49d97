"""The referee, against a small schema of our own and the official models."""

import json
from pathlib import Path
from typing import Any

import pytest

from acp_bridge.testing.editor import Entry
from acp_bridge.testing.validate import NOTIFICATIONS, REQUESTS, RESPONSES, Referee
from tests.support.official import SHARED_SCHEMA

SCHEMA = {
    "$defs": {
        "Meta": {"type": "object", "properties": {"_meta": {"type": "object"}}},
        "Text": {
            "type": "object",
            "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
            "required": ["type"],
        },
        "Open": {
            "type": "object",
            "properties": {"type": {"const": "open"}},
            "required": ["type"],
            "additionalProperties": True,
        },
        "Content": {"oneOf": [{"$ref": "#/$defs/Text"}, {"$ref": "#/$defs/Open"}]},
        "PromptResponse": {
            "type": "object",
            "allOf": [{"$ref": "#/$defs/Meta"}],
            "properties": {
                "stopReason": {"type": "string"},
                "content": {"type": "array", "items": {"$ref": "#/$defs/Content"}},
                "untyped": {"type": "array"},
                "free": {"type": "object"},
            },
            "required": ["stopReason"],
        },
    }
}


class Absent:
    """Nothing is installed."""

    @staticmethod
    def load(name: str) -> Any:
        raise ImportError(name)


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return path


def no_models(name: str) -> Any:
    if name == "acp.schema":
        raise ImportError(name)
    return __import__(name)


def client(frame: dict[str, Any]) -> Entry:
    return Entry("client", {"jsonrpc": "2.0", **frame})


def agent(frame: dict[str, Any]) -> Entry:
    return Entry("agent", {"jsonrpc": "2.0", **frame})


def answer(result: Any, method: str = "session/prompt") -> list[Entry]:
    return [client({"id": 1, "method": method}), agent({"id": 1, "result": result})]


def verdicts(referee: Referee, entries: list[Entry]) -> list[str]:
    return [line.split(" <- ")[0] for line in referee.violations(entries)]


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ({"stopReason": "end_turn", "_meta": {"anything": 1}}, []),
        ({"stopReason": "x", "content": [{"type": "text", "text": "t", "_meta": {}}, {"type": "open", "more": 1}]}, []),
        ({"stopReason": "x", "untyped": [{"a": 1}], "free": {"a": 1}}, []),
        ({"stopReason": 3}, ["PromptResponse (official schema): $.stopReason: 3 is not of type 'string'"]),
        ({"stopReason": "x", "extra": 1}, ["PromptResponse: the official schema names no $.extra"]),
        (
            {"stopReason": "x", "content": [{"type": "text", "texxt": "t"}]},
            ["PromptResponse: the official schema names no $.content[0].texxt"],
        ),
    ],
)
def test_a_value_is_checked_against_the_schema_with_strict_keys(schema, result, found):
    referee = Referee(environment={}, schema=schema, load_module=no_models)
    assert verdicts(referee, answer(result)) == found
    assert referee.skipped == ["acp.schema is not installed"]


def test_the_schema_is_found_through_the_environment(schema, tmp_path):
    shared = tmp_path / "shared"
    (shared / "acp").mkdir(parents=True)
    (shared / "acp" / "schema-v1.json").write_text(json.dumps(SCHEMA))
    for environment in ({"ACP_SCHEMA": str(schema)}, {"DSH_SHARED": str(shared)}, {"ACP_SCHEMA": "/no/such/file"}):
        referee = Referee(environment=environment, schema=schema, load_module=no_models)
        assert verdicts(referee, answer({})) != []


def test_what_cannot_be_checked_is_named(schema):
    referee = Referee(environment={}, schema=schema, load_module=Absent.load)
    assert referee.skipped == ["jsonschema is not installed", "acp.schema is not installed"]
    assert verdicts(referee, answer({})) == []
    assert Referee(environment={}).skipped == ["official schema: set ACP_SCHEMA to its path"]


def test_the_official_models_are_asked():
    referee = Referee(environment={})
    assert verdicts(referee, answer({"stopReason": "end_turn"})) == []
    (line,) = verdicts(referee, answer({"stopReason": "tired"}))
    assert line.startswith("PromptResponse (official model): 1 validation error")
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
    update = {"method": "session/update", "params": {"sessionId": "s", "update": chunk}}
    assert verdicts(referee, [agent(update)]) == []
    assert len(verdicts(referee, [agent({"method": "session/update", "params": {"sessionId": "s"}})])) == 1
    assert len(verdicts(referee, [agent({"id": 4, "method": "session/request_permission"})])) == 1


@pytest.mark.parametrize("name", sorted({*RESPONSES.values(), *REQUESTS.values(), *NOTIFICATIONS.values()}))
@pytest.mark.skipif(not SHARED_SCHEMA.exists(), reason=f"no official schema at {SHARED_SCHEMA}")
def test_every_definition_that_we_name_exists_in_the_official_schema(name):
    definitions = json.loads(SHARED_SCHEMA.read_text())["$defs"]
    assert name in definitions


@pytest.mark.parametrize(
    ("frame", "found"),
    [
        ({"id": 1, "result": {}, "error": {"code": 1, "message": "m"}}, ["a response needs either result or error"]),
        ({"id": 1}, ["a response needs either result or error"]),
        ({"id": 1, "result": None}, ["a result is always an object"]),
        ({"id": 1, "result": {}}, []),
        ({"id": 1, "error": {"code": -1, "message": "m", "data": {"reason": "x"}}}, []),
        ({"id": 1, "error": {"code": True, "message": "m"}}, ["an error needs an integer code and a message"]),
        ({"id": 1, "error": "bad"}, ["an error needs an integer code and a message"]),
        ({"id": 1, "error": {"code": 1, "message": "m", "data": None}}, ["error data is absent or an object"]),
        ({"method": "_own/thing"}, []),
        ({"method": "$/progress"}, []),
        ({"method": "session/dance"}, ["session/dance is no notification of an agent"]),
        ({"id": 1, "method": "session/update"}, ["session/update is no request of an agent"]),
    ],
)
def test_envelopes_are_checked(frame, found):
    referee = Referee(environment={}, load_module=Absent.load)
    assert verdicts(referee, [client({"method": "session/cancel"}), agent(frame)]) == found


def test_the_version_of_json_rpc_is_checked():
    referee = Referee(environment={}, load_module=Absent.load)
    assert referee.violations([Entry("agent", {"id": 1, "result": {}})]) == [
        'jsonrpc is not "2.0" <- {"id":1,"result":{}}'
    ]
