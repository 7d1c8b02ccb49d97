"""The parts of the tool seam that do something."""

from agent_loop.abort import AbortController
from agent_loop.tools.seam import Allow, AllowAll, Ask, Decision, Subject, Tool, ToolCall, ToolOutcome
from agent_loop.vocabulary import text_block
from tests.support.scripted_tool import ScriptedTool

CALL = ToolCall("c1", "bash", {}, "{}")


async def test_an_agent_without_an_editor_asks_nothing():
    policy = AllowAll()
    assert policy.evaluate("s1", None, CALL, "/srv/app", ("/srv/app",)) == Allow()
    answer = await policy.ask("s1", None, CALL, Ask("digest"), AbortController())
    assert answer == Decision("allow", "policy")


def test_a_failed_outcome_is_an_error_text_with_its_identity():
    assert ToolOutcome.failed("no such thing", name="LookupError", code="MISSING") == ToolOutcome(
        [text_block("Error: no such thing")], is_error=True, error={"name": "LookupError", "code": "MISSING"}
    )


def test_a_tool_that_says_nothing_of_what_it_touches_touches_nothing_that_has_a_name():
    assert Tool.subject(ScriptedTool(), {}, "/srv/app") == Subject()
