"""The recordings of the system that this one follows replay here: same transcript, same log.

They are another project's data and no part of this repository: found through `DSH_REFERENCE`, else beside it.
Compared are the golden's update kinds, the prompt answers and the event types of its log; fields may be added, none
may be missing or different. Set aside: `rawInput` (ours is an object), `seq`, the answer to `initialize`.
"""

import os
from pathlib import Path

import pytest

from acp_bridge.testing.conversation import Conversation
from acp_bridge.testing.harness import Run, run_scenario
from acp_bridge.testing.json_values import JsonObject, contains, read_lines
from acp_bridge.testing.normalise import normalise_log, update_of
from acp_bridge.testing.scenario import AgentProfile, Scenario
from tests.support.official import agent_command, referee

REPOSITORY = Path(__file__).parent.parent
REFERENCE = Path(os.environ.get("DSH_REFERENCE") or REPOSITORY.parent / "shared" / "fixtures" / "dsh-2026-06-21")
NAMES = ["handshake", "text-turn", "tool-call-turn", "error-finish", "cancel"]
KINDS = {"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"}

pytestmark = [
    pytest.mark.usefixtures("unmeasured"),
    pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no reference recordings at {REFERENCE} (DSH_REFERENCE)"),
]


def replay(name: str) -> Run:
    scenario = Scenario(
        REFERENCE / name,
        has_model_turn=name != "handshake",
        source="recorded",
        env={"DSH_PERMISSION_MODE": "full"},
        profile=AgentProfile(command=agent_command(), replay_env="DSH_SNAPSHOT", log_glob="**/*.jsonl"),
    )
    run = run_scenario(scenario)
    assert run.failures == [], run.stderr
    return run


def compared(frames: list[JsonObject]) -> list[JsonObject]:
    """Session updates of the golden's kinds and the answers, the first (initialize) aside, without `rawInput`."""
    output: list[JsonObject] = []
    for frame in frames:
        update = update_of(frame)
        if update.get("sessionUpdate") in KINDS:
            update = {key: value for key, value in update.items() if key != "rawInput"}
            output.append({**frame, "params": {**frame["params"], "update": update}})
        elif "method" not in frame and frame["id"] != 1:
            output.append(frame)
    return output


def assert_each_contains(found: list[JsonObject], expected: list[JsonObject]) -> None:
    for index, (ours, theirs) in enumerate(zip(found, expected, strict=False)):
        assert contains(ours, theirs), f"record {index}: {theirs} is not in {ours}"
    assert len(found) == len(expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_transcript_and_the_log_of_a_reference_recording_are_the_same(name):
    run = replay(name)
    assert_each_contains(compared(run.transcript), compared(read_lines(REFERENCE / name / "stdout.golden.jsonl")))
    assert referee().violations(run.entries) == []
    assert Conversation().violations(run.entries) == []
    (log,) = run.logs
    if name == "handshake":
        # a handshake alone persists none
        assert log is None
        return
    assert log is not None
    assert [record["seq"] for record in log[1:]] == list(range(len(log) - 1))
    expected = normalise_log(read_lines(REFERENCE / name / "session.jsonl"))
    types = {record["type"] for record in expected}
    assert_each_contains(
        [without_seq(record) for record in log if record["type"] in types], [without_seq(record) for record in expected]
    )


def without_seq(record: JsonObject) -> JsonObject:
    return {key: value for key, value in record.items() if key != "seq"}
