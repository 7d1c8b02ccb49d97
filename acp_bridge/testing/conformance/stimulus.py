"""What the scripted model says, made from the tools that the agent under test offers it (contract snapshots.md §7).

May not know: processes, verdicts. Invariant: an answer is made from the request that it answers; where no offered tool
can do what is wanted, it is the plain text `NO_TOOL`, and nothing is provoked.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from acp_bridge.testing.json_values import JsonObject, as_list, as_object

Answer = dict[str, Any]
MakeAnswer = Callable[[JsonObject], Answer]
"""From the body of a model request to the answer it gets."""

NO_TOOL = "no tool was offered that does this"
_COMMAND_KEYS = ("command", "cmd", "script", "command_line", "commandLine", "shell_command")
_PATH_KEYS = ("file_path", "path", "filePath", "filename", "file", "target_file", "absolute_path")
_CONTENT_KEYS = ("content", "contents", "text", "file_content", "code_edit")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a model request: its name, and its parameters as JSON Schema."""

    name: str
    schema: JsonObject

    @property
    def properties(self) -> JsonObject:
        return as_object(self.schema.get("properties")) or {}

    def key(self, names: Iterable[str]) -> str | None:
        """The first of `names` that is a parameter."""
        return next((name for name in names if name in self.properties), None)

    def call(self, arguments: Mapping[str, Any], *, call_id: str) -> Answer:
        """The answer that calls it; what it requires beside `arguments` is filled in."""
        return raw_call(self.name, json.dumps({**filled(self.schema), **arguments}), call_id=call_id)


def raw_call(name: str, arguments: str, *, call_id: str) -> Answer:
    """An answer that is one tool call with this text as its arguments."""
    return {"tool_calls": [{"id": call_id, "name": name, "arguments": [arguments]}]}


def tools_of(body: JsonObject) -> list[Tool]:
    """The tools that a model request offers, in its order."""
    functions = [as_object(row.get("function")) or {} for row in as_list(body.get("tools")) or []]
    return [Tool(row["name"], as_object(row.get("parameters")) or {}) for row in functions if "name" in row]


def filled(schema: JsonObject) -> Any:
    """A small value that fits `schema`; objects hold what is required only."""
    if "enum" in schema:
        return schema["enum"][0]
    kinds = as_list(schema.get("type")) or [schema.get("type")]
    kind = kinds[0]
    if kind == "object" or "properties" in schema:
        properties = as_object(schema.get("properties")) or {}
        return {name: filled(properties.get(name, {})) for name in as_list(schema.get("required")) or []}
    if kind == "array":
        return [filled(as_object(schema.get("items")) or {}) for _ in range(schema.get("minItems", 0))]
    values: Mapping[Any, Any] = {"integer": 1000, "number": 1000, "boolean": False}
    return values.get(kind, "for the conformance suite")


def shell_tool(body: JsonObject) -> Tool | None:
    """The offered tool that runs a command."""
    return next((tool for tool in tools_of(body) if tool.key(_COMMAND_KEYS)), None)


def shell(command: str, *, call_id: str = "call_0") -> MakeAnswer:
    """Run `command` in a shell."""
    return shells((command, call_id))


def shells(*calls: tuple[str, str]) -> MakeAnswer:
    """Several commands (command, call id) in one answer."""

    def answer(body: JsonObject) -> Answer:
        tool = shell_tool(body)
        if tool is None:
            return said(NO_TOOL)
        made = [tool.call(_command(tool, command), call_id=call_id) for command, call_id in calls]
        return {"tool_calls": [call for each in made for call in each["tool_calls"]]}

    return answer


def _command(tool: Tool, command: str) -> JsonObject:
    key = str(tool.key(_COMMAND_KEYS))
    is_argv = tool.properties[key].get("type") == "array"
    return {key: ["bash", "-c", command] if is_argv else command}


def broken_shell(*, call_id: str) -> MakeAnswer:
    """Call the shell tool with arguments that are no JSON."""

    def answer(body: JsonObject) -> Answer:
        tool = shell_tool(body)
        return said(NO_TOOL) if tool is None else raw_call(tool.name, '{"command": "echo', call_id=call_id)

    return answer


def write_tool(body: JsonObject) -> Tool | None:
    """The offered tool that writes a whole file."""
    fitting = (tool for tool in tools_of(body) if tool.key(_PATH_KEYS) and tool.key(_CONTENT_KEYS))
    return next(fitting, None)


def write_file(path: str, content: str, *, call_id: str) -> MakeAnswer:
    """Write `content` to `path`."""

    def answer(body: JsonObject) -> Answer:
        tool = write_tool(body)
        if tool is None:
            return said(NO_TOOL)
        arguments = {str(tool.key(_PATH_KEYS)): path, str(tool.key(_CONTENT_KEYS)): content}
        return tool.call(arguments, call_id=call_id)

    return answer


def read_tool(body: JsonObject) -> Tool | None:
    """The offered tool that reads one file."""
    fitting = (tool for tool in tools_of(body) if "read" in tool.name.lower() and tool.key(_PATH_KEYS))
    return next(fitting, None)


def read_file(path: str, *, call_id: str) -> MakeAnswer:
    """Read `path`."""

    def answer(body: JsonObject) -> Answer:
        tool = read_tool(body)
        return said(NO_TOOL) if tool is None else tool.call({str(tool.key(_PATH_KEYS)): path}, call_id=call_id)

    return answer


def file_calls(path: str) -> MakeAnswer:
    """Read and write `path` in one answer, with those tools for it that there are."""
    makers = (read_file(path, call_id="call_read"), write_file(path, "written", call_id="call_write"))

    def answer(body: JsonObject) -> Answer:
        calls = [call for make in makers for call in make(body).get("tool_calls", ())]
        return {"tool_calls": calls} if calls else said(NO_TOOL)

    return answer


def plan_tool(body: JsonObject) -> tuple[Tool, str] | None:
    """The offered tool that keeps a plan, and the name of its list of objects."""
    for tool in tools_of(body):
        if "todo" in tool.name.lower() or "plan" in tool.name.lower():
            for name, schema in tool.properties.items():
                if (as_object(schema.get("items")) or {}).get("type") == "object":
                    return tool, name
    return None


def plan(*texts: str, call_id: str) -> MakeAnswer:
    """Set a plan of one entry per text."""

    def answer(body: JsonObject) -> Answer:
        found = plan_tool(body)
        if found is None:
            return said(NO_TOOL)
        tool, name = found
        item: JsonObject = tool.properties[name]["items"]
        key = Tool("", item).key(("content", "step", "title", "text", "description")) or "content"
        return tool.call({name: [{**filled(item), key: text} for text in texts]}, call_id=call_id)

    return answer


def question_tool(body: JsonObject) -> Tool | None:
    """The offered tool that asks the user something."""
    words = ("ask", "question", "elicit")
    return next((tool for tool in tools_of(body) if any(word in tool.name.lower() for word in words)), None)


def question(*, call_id: str) -> MakeAnswer:
    """Ask the user."""

    def answer(body: JsonObject) -> Answer:
        tool = question_tool(body)
        return said(NO_TOOL) if tool is None else tool.call({}, call_id=call_id)

    return answer


def said(*texts: str) -> Answer:
    """Plain text, one delta each, and the end of the turn."""
    return {"text": list(texts)}


def said_by_prompt(body: JsonObject) -> Answer:
    """Answer `re: <the last text of the user>`."""
    return said("re: ", last_user_text(body))


def text_of(message: JsonObject) -> str:
    """The text of a model message, its parts joined by newlines."""
    content = message.get("content")
    parts = as_list(content)
    if parts is None:
        return str(content or "")
    return "\n".join(str(part.get("text", "")) for part in parts)


def user_texts(body: JsonObject) -> list[str]:
    """The texts of the user's messages in a model request, in order."""
    return [text_of(message) for message in body.get("messages", []) if message.get("role") == "user"]


def last_user_text(body: JsonObject) -> str:
    """The last of them, empty when there is none."""
    return (user_texts(body) or [""])[-1]


def gated(before: str, gate: str, after: str) -> Answer:
    """Text in two deltas; the second comes when the gate of the model is opened."""
    return {"stream": [{"text": [before]}, {"gate": gate}, {"text": [after], "finish": "stop"}, {"done": True}]}
