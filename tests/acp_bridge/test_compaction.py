"""A conversation that is summarised: what the client sees of it, and what the model is sent afterwards."""

from dataclasses import replace

from agent_loop.errors import LlmError
from tests.support.agent_world import OPTIONS
from tests.support.bridge_world import bridge_world
from tests.support.scripted_adapter import says

COMPACTS = {"session": {"compaction": {}}}
OVERFLOW = LlmError("too long", "CONTEXT_OVERFLOW")
PAST = says("done", usage={"inputTokens": 900, "outputTokens": 10})
LONG = "x" * 9000


def of_kind(world, *kinds):
    return [update for _session, update in world.updates if update["sessionUpdate"] in kinds]


def sent(world, number=-1):
    """The texts that the model was sent with a request."""
    blocks = [block for message in world.agents.adapter.requests[number].messages for block in message["content"]]
    return [block.get("text", "") for block in blocks]


def summary(text):
    return ["<context source=compaction>", text, "</context>"]


def options(world, **changes):
    """Sessions opened from here on summarise by themselves."""
    parts = world.bridge.parts
    changed = replace(OPTIONS, window=1000, compact_at=0.8, **changes)
    object.__setattr__(parts, "options", lambda *_args: changed)


async def test_the_command_summarises_all_but_the_last_turn(tmp_path):
    answers = says("a"), says("b"), says("SUM"), says("c")
    async with bridge_world(*answers, cwd=tmp_path, capabilities=COMPACTS) as world:
        session = await world.new_session()
        for text in ("one", "two"):
            await world.prompt(session, text)
        assert await world.prompt(session, "/compact keep names") == {"stopReason": "end_turn"}
        assert world.text().endswith("the model goes on from the summary.")
        assert sent(world)[:2] == ["one", "a"]
        assert sent(world)[-1].endswith("The user adds: keep names")
        await world.prompt(session, "three")
        assert sent(world) == [*summary("SUM"), "two", "b", "three"]
        assert of_kind(world, "compaction_update", "compaction_summary_chunk") == [
            {"sessionUpdate": "compaction_update", "compactionId": "k3.1", "status": "in_progress"},
            {
                "sessionUpdate": "compaction_summary_chunk",
                "compactionId": "k3.1",
                "content": {"type": "text", "text": "SUM"},
            },
            {"sessionUpdate": "compaction_update", "compactionId": "k3.1", "status": "completed"},
        ]
        types = [event.type for event in world.agents.events[session]]
        turn = types[len(types) - types[::-1].index("history/compacted") - 9 :]
        assert "command/run" in turn
