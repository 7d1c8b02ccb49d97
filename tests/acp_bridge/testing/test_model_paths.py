from acp_bridge.testing.model_paths import CWD, moved

OLD = '/tmp/a"b/cwd'


def event(**delta):
    return {"event": {"choices": [{"index": 0, "delta": delta}]}}


def arguments(text, index=0):
    return event(tool_calls=[{"index": index, "function": {"arguments": text}}])


def test_a_path_that_two_events_share_is_moved():
    answer = {"stream": [event(content="in /home/"), event(content="me/cwd is"), event(content=" /home/me/cwd")]}
    assert moved([answer], old="/home/me/cwd", new=CWD) == [
        {"stream": [event(content="in {{cwd}}"), event(content=" is"), event(content=" {{cwd}}")]}
    ]


def test_texts_and_calls_are_sayings_of_their_own():
    answer = {
        "stream": [
            event(content="/w/"),
            event(reasoning_content="cwd"),
            arguments('{"a":"/w', 0),
            arguments('{"b":"/w', 1),
            arguments('/cwd"}', 0),
            arguments('/cw"}', 1),
            {"event": {"choices": [], "usage": {}}},
            {"event": {"choices": [{"delta": {"content": None, "role": "assistant"}}]}},
            {"done": True},
        ]
    }
    (found,) = moved([answer], old="/w/cwd", new=CWD)
    assert found["stream"][2:6] == [
        arguments('{"a":"{{cwd}}', 0),
        arguments('{"b":"/w', 1),
        arguments('"}', 0),
        arguments('/cw"}', 1),
    ]
    assert [*found["stream"][:2], *found["stream"][6:]] == [*answer["stream"][:2], *answer["stream"][6:]]


def test_flat_answers_and_bodies_are_moved_too():
    answers = [
        {"text": ["at /w", "/cwd"], "tool_calls": [{"id": "1", "name": "sh", "arguments": ['{"c":"/w/cwd"}']}]},
        {"stream": [{"text": ["/w/cw", "d"]}]},
        {"status": 200, "body": {"choices": [{"message": {"content": "/w/cwd"}}]}},
    ]
    assert moved(answers, old="/w/cwd", new=CWD) == [
        {"text": ["at {{cwd}}", ""], "tool_calls": [{"id": "1", "name": "sh", "arguments": ['{"c":"{{cwd}}"}']}]},
        {"stream": [{"text": ["{{cwd}}", ""]}]},
        {"status": 200, "body": {"choices": [{"message": {"content": "{{cwd}}"}}]}},
    ]


def test_there_and_back_again_says_the_same():
    answer = {"stream": [event(content=f"see {OLD}/x and {OLD}/y")]}
    there = moved([answer], old=OLD, new=CWD)
    assert OLD not in str(there)
    assert moved(there, old=CWD, new=OLD) == [answer]
