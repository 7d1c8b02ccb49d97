import json
import os

import pytest

from acp_bridge.testing.answers import Answers
from acp_bridge.testing.editor import Editor
from acp_bridge.testing.harness import run_scenario
from acp_bridge.testing.pacing import STEADY, Pacing, RandomPacing
from tests.support.stub_scenario import STUB, prompt, stub_scenario


def test_the_steady_pace_writes_at_once_and_answers_at_once():
    assert list(STEADY.pieces(b"abc")) == [b"abc"]
    assert STEADY.pause() == 0


def test_a_random_pace_cuts_anywhere_and_loses_nothing():
    pacing, data = RandomPacing(1), "größe\n".encode() * 20
    cuts = [list(pacing.pieces(data)) for _ in range(40)]
    assert all(b"".join(pieces) == data and all(pieces) for pieces in cuts)
    assert {len(pieces) for pieces in cuts} >= {1, len(data)}


def test_one_seed_is_one_pace():
    def told(seed):
        pacing = RandomPacing(seed)
        return [(len(list(pacing.pieces(bytes(100)))), pacing.pause()) for _ in range(20)]

    assert told(3) == told(3) != told(4)
    assert all(0 <= pause < 0.05 for _, pause in told(3))


@pytest.mark.parametrize("seed", [1, 2])
def test_an_agent_hears_the_same_whatever_the_pace(tmp_path, seed):
    answers = [{"kind": "allow_once"}, {"kind": "reject_once"}]
    scenario = stub_scenario(tmp_path / "s", prompt("ask"), prompt("say größe\u2028"), prompt("ask"), answers=answers)
    steady = run_scenario(scenario)
    assert steady.failures == []
    assert run_scenario(scenario, pacing=RandomPacing(seed)).transcript == steady.transcript


class NeverPacing(Pacing):
    def pause(self) -> float:
        return 600.0


def test_an_answer_that_is_still_to_come_ends_with_the_agent(tmp_path):
    editor = Editor(
        STUB,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        stderr=tmp_path / "stderr",
        answers=Answers({"permission": [{"kind": "allow_once"}]}),
        pacing=NeverPacing(),
    )
    editor.start()
    try:
        session = editor.response(editor.request("session/new", {"cwd": str(tmp_path)}))["result"]["sessionId"]
        text = [{"type": "text", "text": "ask-and-go"}]
        answered = editor.response(editor.request("session/prompt", {"sessionId": session, "prompt": text}))
        assert answered["result"] == {"stopReason": "end_turn"}
    finally:
        editor.kill()
    assert "optionId" not in json.dumps([entry.frame for entry in editor.entries if entry.sender == "client"])
