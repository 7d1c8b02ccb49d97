"""The policy stands before every call (contract agent-loop.md §3, tools-and-bash.md)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_loop.agent import Agent
from agent_loop.errors import HarnessError
from agent_loop.tools.seam import (
    Allow,
    Ask,
    Decision,
    Deny,
    Subject,
    Tool,
    ToolCall,
    ToolContext,
    ToolOutcome,
    Verdict,
    resolved_path,
)
from tests.support.agent_world import CWD, World, agent_world
from tests.support.scripted_adapter import calls, says
from tests.support.scripted_policy import ScriptedPolicy
from tests.support.scripted_tool import ScriptedTool, outcome

ECHO = ("call-1", "echo", {"value": "x"})
DIGEST = f'digest of {{"value": "x"}} in {CWD}'


async def test_an_allowed_call_is_asked_about_then_run():
    policy = ScriptedPolicy(Decision("allow", "user"))
    tool = ScriptedTool(previews=[{"diff": "none"}])
    async with agent_world(calls(ECHO), says("done"), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        asked = [event.type for event in world.log(agent) if event.type.startswith(("tool/", "permission/"))]
        assert asked == ["permission/request", "tool/call", "permission/decision", "tool/result"]
        assert world.of(agent, "permission/request") == [
            {"callId": "call-1", "digest": DIGEST, "preview": {"diff": "none"}}
        ]
        assert world.of(agent, "permission/decision") == [
            {"callId": "call-1", "digest": DIGEST, "outcome": "allow", "by": "user"}
        ]
        assert tool.ran == [{"value": "x"}]


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Decision("reject", "user"), "the user refused this call"),
        (Decision("reject", "policy"), "nobody could be asked: the user has not started this turn"),
        (Decision("reject", "client"), "permission for this call was not given"),
        (Decision("cancelled", "client"), "permission for this call was not given"),
    ],
)
async def test_a_call_that_is_not_allowed_does_not_run_and_the_model_is_told(decision: Decision, said: str):
    tool = ScriptedTool()
    async with agent_world(calls(ECHO), says("fine"), policy=ScriptedPolicy(decision)) as world:
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        assert tool.ran == []
        assert "preview" not in world.of(agent, "permission/request")[0]
        [result] = world.of(agent, "tool/result")
        assert result["isError"]
        assert result["error"] == {"name": "PermissionError", "code": "rejected"}
        assert said in result["content"][0]["text"]
        # the turn goes on
        assert world.reasons(agent) == [{"kind": "completed"}]


async def test_nobody_is_asked_about_a_call_that_cannot_run():
    policy = ScriptedPolicy()
    wrong = calls(("a", "missing", {}), ("b", "echo", "{half"), ("c", "echo", {"value": 7}))
    async with agent_world(wrong, says("oh"), policy=policy) as world:
        world.tools.register(ScriptedTool())
        agent = world.agent()
        await world.prompt(agent)
        assert policy.evaluated == []
        assert [result["error"]["code"] for result in world.of(agent, "tool/result")] == [
            "UNKNOWN_TOOL",
            "INVALID_ARGS",
            "INVALID_ARGS",
        ]
        # the raw text is kept
        assert world.of(agent, "tool/call")[1]["arguments"] == "{half"


async def test_a_call_that_is_asked_about_never_runs_beside_others():
    policy = ScriptedPolicy(Decision("allow", "user"), asks_about={"secret"})
    wanted = [("a", "read", {}), ("b", "secret", {}), ("c", "read", {})]
    async with agent_world(calls(*wanted), says("ok"), policy=policy) as world:
        world.tools.register(ScriptedTool("read", concurrency_safe=True))
        world.tools.register(ScriptedTool("secret", concurrency_safe=True))
        agent = world.agent()
        await world.prompt(agent)
        order = [
            (event.type, event.data["callId"])
            for event in world.log(agent)
            if event.type.startswith(("tool/", "permission/"))
        ]
        assert order == [
            ("tool/call", "a"),
            ("tool/result", "a"),
            ("permission/request", "b"),
            ("tool/call", "b"),
            ("permission/decision", "b"),
            ("tool/result", "b"),
            ("tool/call", "c"),
            ("tool/result", "c"),
        ]


async def test_nobody_is_asked_about_a_call_that_can_only_fail():
    policy = ScriptedPolicy()
    tool = ScriptedTool(previews=[HarnessError("there is no such file", "NOT_FOUND")])
    async with agent_world(calls(ECHO), says("oh"), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        assert not world.of(agent, "permission/request")
        assert not world.of(agent, "permission/decision")
        [result] = world.of(agent, "tool/result")
        assert result["error"] == {"name": "HarnessError", "code": "NOT_FOUND"}
        assert tool.ran == []


async def test_a_call_that_can_only_fail_by_the_time_of_the_yes_fails_so():
    policy = ScriptedPolicy(Decision("allow", "user"))
    tool = ScriptedTool(previews=[{"diff": 1}, HarnessError("the file is gone", "NOT_FOUND")])
    async with agent_world(calls(ECHO), says("oh"), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        assert [decision["outcome"] for decision in world.of(agent, "permission/decision")] == ["allow"]
        [result] = world.of(agent, "tool/result")
        assert result["error"]["code"] == "NOT_FOUND"
        assert tool.ran == []


GRANT = {"effect": "allow", "rules": [{"scope": "session", "kind": "tool", "tool": "echo"}]}


class Judge(ScriptedPolicy):
    """Gives verdicts in order, then the last again."""

    def __init__(self, *verdicts: Verdict, answers: Sequence[Decision] = ()) -> None:
        super().__init__(*answers)
        self.verdicts = list(verdicts)

    def evaluate(self, session_id: str, tool: Tool, call: ToolCall, cwd: str, roots: tuple[str, ...]) -> Verdict:
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]


def trail(world: World, agent: Agent) -> list[str]:
    """The permission and tool events, with the outcomes of decisions."""
    return [
        " ".join(filter(None, [event.type, event.data.get("outcome"), event.data.get("by")]))
        for event in world.log(agent)
        if event.type.startswith(("tool/", "permission/"))
    ]


async def test_a_call_that_a_rule_allows_runs_unasked_and_the_rule_is_logged():
    async with agent_world(calls(ECHO), says("done"), policy=Judge(Allow("d", GRANT))) as world:
        world.tools.register(ScriptedTool())
        agent = world.agent()
        await world.prompt(agent)
        assert trail(world, agent) == ["permission/decision allow rule", "tool/call", "tool/result"]
        assert world.of(agent, "permission/decision")[0] == {
            "callId": "call-1",
            "digest": "d",
            "outcome": "allow",
            "by": "rule",
            "grant": GRANT,
        }


async def test_calls_that_rules_allow_run_side_by_side():
    async with agent_world(
        calls(("a", "read", {}), ("b", "read", {})), says("done"), policy=Judge(Allow("d", GRANT))
    ) as world:
        world.tools.register(ScriptedTool("read", concurrency_safe=True))
        agent = world.agent()
        await world.prompt(agent)
        decided = ["permission/decision allow rule"] * 2
        assert trail(world, agent) == [*decided, "tool/call", "tool/call", "tool/result", "tool/result"]


async def test_a_call_that_a_rule_forbids_does_not_run_and_the_model_is_told_which():
    tool = ScriptedTool()
    policy = Judge(Deny("the user has forbidden that", "d", GRANT))
    async with agent_world(calls(ECHO), says("fine"), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        assert tool.ran == []
        assert trail(world, agent) == ["permission/decision reject rule", "tool/call", "tool/result"]
        [result] = world.of(agent, "tool/result")
        assert result["content"][0]["text"].startswith("Error: the user has forbidden that; it did not run.")


async def test_a_yes_to_what_is_no_longer_shown_is_asked_again():
    policy = Judge(Ask("d"), answers=[Decision("allow", "user"), Decision("allow", "user", GRANT)])
    tool = ScriptedTool(previews=[{"old": 1}, {"old": 2}])
    async with agent_world(calls(ECHO), says("done"), policy=policy) as world:
        world.tools.register(tool)
        agent = world.agent()
        await world.prompt(agent)
        assert trail(world, agent) == [
            "permission/request",
            "tool/call",
            "permission/decision outdated user",
            "permission/request",
            "permission/decision allow user",
            "tool/result",
        ]
        assert [data["preview"] for data in world.of(agent, "permission/request")] == [{"old": 1}, {"old": 2}]
        assert world.of(agent, "permission/decision")[1]["grant"] == GRANT
        assert len(tool.ran) == 1


async def test_a_yes_to_a_path_that_leads_elsewhere_by_now_is_judged_anew():
    here, there = Subject(paths=("/project/a",)), Subject(paths=("/etc/a",))
    for verdict, ran in ((Allow("d", GRANT, there), 1), (Deny("no", "d", GRANT), 0)):
        policy = Judge(Ask("d", subject=here), verdict, answers=[Decision("allow", "user")])
        permitted: list[tuple[str, ...]] = []

        async def body(_arguments: Any, context: ToolContext, permitted: Any = permitted) -> ToolOutcome:
            permitted.append(context.permitted)
            return outcome("ok")

        async with agent_world(calls(ECHO), says("done"), policy=policy) as world:
            world.tools.register(ScriptedTool(body=body, subjects=[there]))
            agent = world.agent()
            await world.prompt(agent)
            assert trail(world, agent)[:3] == ["permission/request", "tool/call", "permission/decision outdated user"]
            assert permitted == [("/etc/a",)] * ran


async def test_a_call_may_touch_what_the_policy_has_decided_on():
    permitted: list[tuple[str, ...]] = []

    async def body(_arguments: Any, context: ToolContext) -> ToolOutcome:
        permitted.append(context.permitted)
        return outcome("ok")

    there = Subject(paths=("/etc/a",))
    for policy in (Judge(Allow(subject=there)), Judge(Ask("d", subject=there), answers=[Decision("allow", "user")])):
        async with agent_world(calls(ECHO), says("done"), policy=policy) as world:
            world.tools.register(ScriptedTool(body=body, subjects=[there]))
            await world.prompt(world.agent())
    assert permitted == [("/etc/a",)] * 2


async def test_a_preview_that_cannot_be_made_is_none():
    policy = Judge(Ask("d"), answers=[Decision("allow", "user")])
    async with agent_world(calls(ECHO), says("done"), policy=policy) as world:
        world.tools.register(ScriptedTool(previews=[OSError("the disk is gone")]))
        agent = world.agent()
        await world.prompt(agent)
        assert world.of(agent, "permission/request") == [{"callId": "call-1", "digest": "d"}]
        assert world.of(agent, "tool/result")[0]["isError"] is False


def test_a_path_is_resolved_as_far_as_it_exists(tmp_path: Path):
    (tmp_path / "link").symlink_to("/")
    assert resolved_path(str(tmp_path), "link/no/../such") == "/such"
    assert resolved_path("/p", "a\0b") == "/p/a\0b"
