from acp_bridge.testing.report_lanes import CONNECTION, Turn, signals, turns
from tests.support.report_runs import agent, client, said

OPENING = (
    client(0.0, id=1, method="initialize", params={}),
    agent(0.1, id=1, result={"protocolVersion": 1}),
    client(0.2, id=2, method="session/new", params={"cwd": "/there/a", "mcpServers": []}),
    agent(0.3, id=2, result={"sessionId": "one"}),
    client(0.4, id=3, method="session/new", params={"cwd": "/there/b", "mcpServers": []}),
    agent(0.5, id=3, result={"sessionId": "two"}),
)


def prompt(at, request_id, session):
    return client(at, id=request_id, method="session/prompt", params={"sessionId": session, "prompt": []})


def lanes(*entries):
    return [signal.lane for signal in signals([*OPENING, *entries])][len(OPENING) :]


def test_sessions_have_lanes_in_the_order_of_their_creation():
    assert [signal.lane for signal in signals(OPENING)] == [
        *[CONNECTION] * 3,
        "session 1",
        CONNECTION,
        "session 2",
    ]
    assert lanes(agent(1, **said("x", "two")), agent(1, **said("x", "one"))) == ["session 2", "session 1"]


def test_an_answer_stands_on_the_lane_of_its_request_in_both_directions():
    asked = {"sessionId": "one", "toolCall": {}}
    wire = (
        prompt(1, 4, "two"),
        # the agent counts its own requests: 4 is another one
        agent(2, id=4, method="session/request_permission", params=asked),
        client(3, id=4, result={"outcome": {}}),
        agent(4, id=4, result={"stopReason": "end_turn"}),
    )
    assert lanes(*wire) == ["session 2", "session 1", "session 1", "session 2"]
    assert [signal.kind for signal in signals([*OPENING, *wire])][-2:] == [
        "result of session/request_permission",
        "result of session/prompt",
    ]


def test_what_belongs_to_no_session_that_was_created_belongs_to_the_connection():
    strange = (agent(1, **said("x", "three")), agent(1, method="x", params=[1]), agent(1, id=None, error={}))
    assert lanes(*strange) == [CONNECTION] * 3


def test_the_directory_and_the_session_ids_are_masked():
    (shown,) = [signal.frame for signal in signals([*OPENING, agent(1, **said("see /there/a/x, one", "one"))])][6:]
    assert shown["params"]["sessionId"] == "{{sessionId}}"
    assert shown["params"]["update"]["content"]["text"] == "see {{cwd}}/x, {{sessionId}}"


def test_a_directory_that_is_no_path_and_a_session_without_id_are_left_alone():
    wire = (
        client(0, id=1, method="session/new", params={"cwd": "x"}),
        agent(1, id=1, result={"sessionId": "one"}),
        client(2, id=2, method="session/new", params={"cwd": "/srv/app"}),
        agent(3, id=2, result={}),
        agent(4, **said("x one /srv/app", "one")),
    )
    assert signals(wire)[-1].frame["params"]["update"]["content"]["text"] == "x {{sessionId}} /srv/app"


def test_a_turn_lasts_from_the_prompt_to_its_answer_or_to_the_end_of_the_wire():
    wire = signals(
        [
            *OPENING,
            prompt(1.0, 4, "one"),
            prompt(1.5, 5, "two"),
            agent(2.0, id=5, method="session/request_permission", params={"sessionId": "one"}),
            agent(2.5, id=4, result={"stopReason": "end_turn"}),
            client(3.0, id=5, result={}),
        ]
    )
    assert turns(wire) == [Turn("session 1", 1.0, 2.5), Turn("session 2", 1.5, 3.0)]
    assert turns([]) == []
