"""Cards: what an editor gets of a tool call, with and without display terminals."""

from acp_bridge.schema import ClientCapabilities
from acp_bridge.translate.v1 import cards
from acp_bridge.translate.v1.cards import LIVE_OUTPUT_LIMIT, TEXT_LIMIT, cut, raw_object
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import make_event
from agent_loop.tools.bash import BashTool
from agent_loop.tools.files.write import WriteTool
from agent_loop.tools.seam import GenericCard
from bash_exec.fake import FakeBashExecutor
from tests.support.scripted_tool import ScriptedTool

BASH = BashTool(FakeBashExecutor({}, task_group=None), notify=lambda *_: None)  # type: ignore[arg-type]
ARGUMENTS = '{"command": "echo hi", "description": "Say hi", "workdir": "sub"}'


class Misbehaving(ScriptedTool):
    def present_call(self, arguments, cwd, preview=None):
        raise ValueError("no card today")

    def present_result(self, arguments, content, meta):
        raise ValueError("no end either")


class Located(ScriptedTool):
    def present_call(self, arguments, cwd, preview=None):
        return GenericCard("Read a", "read", [{"type": "image", "url": "x"}], [{"path": "/p/a", "line": 3}])

    def present_result(self, arguments, content, meta):
        return GenericCard("Read a", "read", [{"type": "text", "text": "lines"}])


TOOLS = {
    "write": WriteTool(),
    "bash": BASH,
    "bad": Misbehaving("bad"),
    "read": Located("read"),
    "plain": ScriptedTool("plain"),
}


def renderer(*, terminal=False):
    capabilities = ClientCapabilities(terminal_output=terminal)
    return UpdateRenderer(TOOLS.get, capabilities, cwd="/p", window=lambda: None, live=True)


def call(name, arguments=ARGUMENTS):
    data = {"turn": 1, "step": 1, "callId": "c1", "name": name, "arguments": arguments}
    return make_event("tool/call", 0, 0, data)


def result(text, *, is_error=False, **meta):
    data = {
        "turn": 1,
        "step": 1,
        "callId": "c1",
        "content": [{"type": "text", "text": text}],
        "isError": is_error,
        **({"meta": meta} if meta else {}),
    }
    return make_event("tool/result", 1, 0, data)


def test_a_command_without_a_terminal_is_shown_as_fenced_console_text():
    shown = renderer()
    (opened,) = shown.render(call("bash"))
    (closed,) = shown.render(result("hi\n", exitCode=0, output="hi\n"))
    assert opened == {
        "sessionUpdate": "tool_call",
        "toolCallId": "c1",
        "title": "echo hi",
        "name": "bash",
        "kind": "execute",
        "status": "in_progress",
        "rawInput": {"command": "echo hi", "description": "Say hi", "workdir": "sub"},
        "content": [{"type": "content", "content": {"type": "text", "text": "Say hi"}}],
        "_meta": {"tool_name": "bash"},
    }
    assert closed == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c1",
        "status": "completed",
        "rawOutput": {"exitCode": 0},
        "content": [{"type": "content", "content": {"type": "text", "text": "```console\nhi\n```"}}],
        "_meta": {"tool_name": "bash"},
    }


def test_a_command_in_a_terminal_opens_it_streams_new_text_and_closes_it_once():
    shown = renderer(terminal=True)
    (opened,) = shown.render(call("bash"))
    first = shown.live_output("c1", "h")
    (closed,) = shown.render(result("hi\n[exit code: 3]", exitCode=3, output="hi\n"))
    assert opened["content"][-1] == {"type": "terminal", "terminalId": "c1"}
    assert opened["_meta"]["terminal_info"] == {"terminal_id": "c1", "cwd": "/p/sub"}
    assert [update["_meta"] for update in first] == [{"terminal_output": {"terminal_id": "c1", "data": "h"}}]
    assert "content" not in closed
    assert closed["_meta"]["terminal_output"] == {"terminal_id": "c1", "data": "i\n"}
    assert closed["_meta"]["terminal_exit"] == {"terminal_id": "c1", "exit_code": 3, "signal": None}
    assert shown.live_output("c1", "late") == []


def test_a_command_that_never_started_says_why_and_still_closes_its_terminal():
    shown = renderer(terminal=True)
    shown.render(call("bash"))
    (closed,) = shown.render(result("Error: the user refused", is_error=True))
    assert closed["status"] == "failed"
    assert closed["content"][0]["content"]["text"] == "Error: the user refused"
    assert closed["_meta"]["terminal_exit"] == {"terminal_id": "c1", "exit_code": None, "signal": None}


def test_output_with_a_gap_that_was_seen_live_is_not_sent_again():
    shown = renderer(terminal=True)
    shown.render(call("bash"))
    shown.live_output("c1", "x" * 1000)
    (closed,) = shown.render(result("…", exitCode=0, outputDropped=5, output="head[5 bytes not shown]\ntail"))
    assert "terminal_output" not in closed["_meta"]


def test_behind_the_live_limit_the_kept_end_follows_with_the_result():
    shown = renderer(terminal=True)
    shown.render(call("bash"))
    sent = shown.live_output("c1", "x" * (LIVE_OUTPUT_LIMIT + 10))
    assert len(sent[0]["_meta"]["terminal_output"]["data"]) == LIVE_OUTPUT_LIMIT
    assert shown.live_output("c1", "more") == []
    (closed,) = shown.render(result("…", exitCode=0, outputDropped=5, output="head[5 bytes not shown]\ntail"))
    assert closed["_meta"]["terminal_output"]["data"] == "[5 bytes not shown]\ntail"


def test_a_tool_whose_presentation_raises_gets_the_generic_card():
    shown = renderer()
    (opened,) = shown.render(call("bad", "{}"))
    (closed,) = shown.render(result("done"))
    assert (opened["title"], opened["kind"]) == ("bad", "other")
    assert closed["content"][0]["content"]["text"] == "done"


def test_a_tool_that_is_gone_gets_the_generic_card():
    shown = renderer()
    (opened,) = shown.render(call("gone", "{}"))
    (closed,) = shown.render(result("done"))
    assert (opened["title"], opened["rawInput"]) == ("gone", {})
    assert "rawOutput" not in closed


def test_locations_and_contents_of_a_generic_card_are_shown():
    shown = renderer()
    (opened,) = shown.render(call("read", "{}"))
    (closed,) = shown.render(result("done"))
    assert opened["locations"] == [{"path": "/p/a", "line": 3}]
    assert opened["content"][0]["content"]["text"] == "[image]"
    assert closed["content"][0]["content"]["text"] == "lines"


def test_a_result_without_a_card_opens_and_closes_one():
    (card,) = renderer().render(result("orphan", is_error=True))
    assert (card["sessionUpdate"], card["status"], card["title"]) == ("tool_call", "failed", "tool")


def test_arguments_that_are_no_object_are_kept_as_text():
    assert raw_object("") == {}
    assert raw_object('{"a": 1}') == {"a": 1}
    assert raw_object("[1]") == {"arguments": "[1]"}
    assert raw_object('{"a"') == {"arguments": '{"a"'}
    long = raw_object('{"a": "' + "x" * TEXT_LIMIT + '", "b": 1}')
    assert len(long["a"]) < TEXT_LIMIT / 4 + 100
    assert long["b"] == 1
    huge = raw_object('{"a": ["' + "x" * TEXT_LIMIT + '"]}')
    assert len(huge["arguments"]) < TEXT_LIMIT + 100


def test_cutting_keeps_both_ends_and_says_how_much_is_gone():
    assert cut("abc", 3) == "abc"
    assert cut("abcdefgh", 4) == "ab\n[… 4 characters left out …]\ngh"
    assert len(cards.cut("x" * (TEXT_LIMIT * 2))) < TEXT_LIMIT + 100


def test_a_command_without_a_description_has_no_content():
    (opened,) = renderer().render(call("bash", '{"command": "ls", "description": ""}'))
    assert "content" not in opened


DIFF = {"path": "/p/a", "oldText": None, "newText": "x"}


def asked(**preview):
    return make_event("permission/request", 0, 0, {"callId": "c1", "digest": "d", **preview})


def test_a_change_is_shown_as_a_diff_before_and_after_it_was_made():
    shown = renderer()
    assert shown.render(asked(preview={"diffs": [DIFF], "line": 4})) == []
    (opened,) = shown.render(call("write", '{"file_path": "a", "content": "x"}'))
    assert (opened["title"], opened["kind"], opened["status"]) == ("Write a", "edit", "pending")
    assert opened["content"] == [{"type": "diff", **DIFF}]
    assert opened["locations"] == [{"path": "/p/a", "line": 4}]
    (closed,) = shown.render(result("Created.", diffs=[{**DIFF, "newText": "y"}], line=5, added=1))
    assert closed["content"] == [{"type": "diff", **DIFF, "newText": "y"}]
    assert closed["locations"] == [{"path": "/p/a", "line": 5}]
    assert closed["rawOutput"] == {"line": 5, "added": 1}


def test_a_change_that_nobody_is_asked_about_shows_its_diff_at_the_end():
    shown = renderer()
    (opened,) = shown.render(call("write", '{"file_path": "a", "content": "x"}'))
    assert "content" not in opened
    assert opened["locations"] == [{"path": "/p/a"}]
    (closed,) = shown.render(result("Replaced.", diffs=[]))
    assert closed["content"] == []
    assert "locations" not in closed


def test_a_question_that_is_asked_again_shows_what_the_call_would_do_now():
    shown = renderer()
    shown.render(asked(preview={"diffs": [DIFF], "line": 4}))
    shown.render(call("write", '{"file_path": "a", "content": "x"}'))
    (again,) = shown.render(asked(preview={"diffs": [{**DIFF, "oldText": "was"}], "line": 1}))
    assert again == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c1",
        "content": [{"type": "diff", **DIFF, "oldText": "was"}],
        "locations": [{"path": "/p/a", "line": 1}],
    }


def test_a_preview_of_a_tool_that_shows_none_changes_nothing_on_the_card():
    shown = renderer()
    shown.render(asked())
    shown.render(call("plain"))
    assert shown.render(asked(preview={"some": "thing"})) == [{"sessionUpdate": "tool_call_update", "toolCallId": "c1"}]


def test_diffs_stay_below_the_limit_of_a_line():
    big = {"path": "/p/a", "oldText": "o" * (TEXT_LIMIT + 10), "newText": "n" * TEXT_LIMIT}
    shown = renderer()
    shown.render(call("write", '{"file_path": "a", "content": "x"}'))
    (closed,) = shown.render(result("Done.", diffs=[big, DIFF, DIFF]))
    first, note = closed["content"]
    assert "[… 10 characters left out …]" in first["oldText"]
    assert first["newText"] == big["newText"]
    assert note["content"]["text"] == "[… 2 more changes not shown …]"
