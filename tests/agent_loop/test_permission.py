"""The policy stands before every call (contract agent-loop.md §3, tools-and-bash.md)."""

import pytest

from agent_loop.errors import HarnessError
from agent_loop.tools.seam import Decision
from tests.support.agent_world import CWD, agent_world
from tests.support.scripted_adapter import calls, says
from tests.support.scripted_policy import ScriptedPolicy
from tests.support.scripted_tool import ScriptedTool

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
        (Decision("reject", "policy"), "permission for this call was not given"),
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
