"""What the scripted model says, by the tools that it is offered."""

import json

import pytest

from acp_bridge.testing.conformance.stimulus import (
    NO_TOOL,
    Tool,
    broken_shell,
    file_calls,
    filled,
    gated,
    last_user_text,
    plan,
    question,
    read_file,
    said,
    said_by_prompt,
    shell,
    shells,
    text_of,
    tools_of,
    user_texts,
    write_file,
)


def body(*tools: tuple[str, dict]) -> dict:
    return {"tools": [{"function": {"name": name, "parameters": schema}} for name, schema in tools]}


def schema(required=(), **properties) -> dict:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}
RUN = ("run", schema(["command", "why", "seconds"], command=TEXT, why=TEXT, seconds={"type": "integer"}))


def called(answer: dict) -> list[tuple[str, str, dict]]:
    return [(call["id"], call["name"], json.loads("".join(call["arguments"]))) for call in answer["tool_calls"]]


def test_a_shell_call_fills_in_what_the_tool_requires():
    arguments = {"command": "ls", "why": "for the conformance suite", "seconds": 1000}
    assert called(shell("ls", call_id="c1")(body(RUN))) == [("c1", "run", arguments)]


def test_a_command_that_is_a_list_is_given_to_bash():
    tool = ("exec", schema(cmd={"type": "array", "items": TEXT}))
    assert called(shell("ls")(body(tool))) == [("call_0", "exec", {"cmd": ["bash", "-c", "ls"]})]


def test_several_commands_are_one_answer():
    made = called(shells(("ls", "a"), ("pwd", "b"))(body(RUN)))
    assert [(call_id, arguments["command"]) for call_id, _, arguments in made] == [("a", "ls"), ("b", "pwd")]


@pytest.mark.parametrize(
    "make",
    [
        shell("ls"),
        broken_shell(call_id="c"),
        write_file("/f", "x", call_id="c"),
        read_file("/f", call_id="c"),
        file_calls("/f"),
        plan("a", call_id="c"),
        question(call_id="c"),
    ],
)
@pytest.mark.parametrize("offered", [{}, body(("todo_search", schema(list=TEXT))), {"tools": [{"type": "other"}]}])
def test_without_a_fitting_tool_the_answer_says_so(make, offered):
    assert make(offered) == said(NO_TOOL)


def test_broken_arguments_are_no_json():
    (call,) = broken_shell(call_id="c")(body(RUN))["tool_calls"]
    with pytest.raises(ValueError, match="Unterminated string"):
        json.loads("".join(call["arguments"]))


def test_files_are_read_and_written_with_the_tools_there_are():
    read, write = ("read_file", schema(path=TEXT)), ("write", schema(file_path=TEXT, content=TEXT))
    reading = ("call_read", "read_file", {"path": "/f"})
    writing = ("call_write", "write", {"file_path": "/f", "content": "written"})
    assert called(file_calls("/f")(body(read, write))) == [reading, writing]
    assert called(file_calls("/f")(body(read))) == [reading]
    assert called(file_calls("/f")(body(write))) == [writing]


def test_a_plan_takes_the_list_of_objects_of_the_tool():
    entry = schema(["step", "status"], step=TEXT, status={"enum": ["pending", "done"]})
    tool = ("update_plan", schema(why=TEXT, steps={"type": "array", "items": entry}))
    steps = [{"step": "a", "status": "pending"}, {"step": "b", "status": "pending"}]
    assert called(plan("a", "b", call_id="c")(body(RUN, tool))) == [("c", "update_plan", {"steps": steps})]


def test_a_plan_without_a_known_key_gets_a_content():
    tool = ("todo", schema(items={"type": "array", "items": schema(x=TEXT)}))
    assert called(plan("a", call_id="c")(body(tool))) == [("c", "todo", {"items": [{"content": "a"}]})]


def test_a_question_is_asked_with_what_the_tool_requires():
    tool = ("ask_user", schema(["question"], question=TEXT))
    assert called(question(call_id="c")(body(tool))) == [("c", "ask_user", {"question": "for the conformance suite"})]


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"enum": ["b", "a"]}, "b"),
        ({"type": ["boolean", "null"]}, False),
        ({"type": "array", "items": {"type": "number"}, "minItems": 2}, [1000, 1000]),
        ({"type": "array"}, []),
        ({"type": "object", "required": ["a"]}, {"a": "for the conformance suite"}),
        ({"type": "object"}, {}),
        ({"properties": {"a": {}}}, {}),
        ({}, "for the conformance suite"),
    ],
)
def test_a_schema_is_filled_with_little(given, value):
    assert filled(given) == value


def test_tools_without_parameters_have_no_properties():
    (tool,) = tools_of({"tools": [{"function": {"name": "now"}}]})
    assert tool == Tool("now", {})
    assert tool.key(["a"]) is None


def test_the_texts_of_the_user_are_found_in_strings_and_in_parts():
    parts = [{"type": "text", "text": "one"}, {"type": "image_url"}]
    messages = [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": parts},
        {"role": "user", "content": "two"},
    ]
    assert user_texts({"messages": messages}) == ["one\n", "two"]
    assert last_user_text({"messages": messages}) == "two"
    assert last_user_text({}) == ""
    assert text_of({"content": None}) == ""
    assert said_by_prompt({"messages": messages}) == said("re: ", "two")


def test_gated_text_comes_in_two_deltas_and_ends_the_stream():
    ops = gated("a", "gate", "b")["stream"]
    assert [next(iter(op)) for op in ops] == ["text", "gate", "text", "done"]
