"""The light path: what it answers itself, and what it hands on untouched."""

import fcntl
import json
import os
import select
from contextlib import contextmanager

import pytest

from acp_bridge.config_file import Flags, RawConfig
from acp_bridge.first_session import plain_offer
from acp_bridge.handshake import Greeting, greet
from acp_bridge.methods.v1.initialize import SignIn

OFFER = plain_offer(RawConfig("/config.toml", {}), Flags(), {})
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


@contextmanager
def pipes():
    """(its input, our end of it, our end of its output, its output)."""
    read_fd, to_it = os.pipe()
    from_it, write_fd = os.pipe()
    ends = [read_fd, to_it, from_it, write_fd]
    try:
        yield ends
    finally:
        for end in ends:
            if end >= 0:
                os.close(end)


def close(ends, index):
    os.close(ends[index])
    ends[index] = -1


def sign_in(variable="MY_KEY", provider="deepseek"):
    return SignIn(provider, variable, ("/bin/dsh-acp-agent", "--model", "m"), {"DSH_MODEL": "n"})


def greeted(data, *, variable="MY_KEY", fork=False, end=False):
    """(greeting, the frame that was answered or None)."""
    with pipes() as ends:
        os.write(ends[1], data)
        if end:
            close(ends, 1)
        greeting = greet(ends[0], ends[3], sign_in(variable), fork=fork, offer=None, parent_alive=lambda: True)
        answered = select.select([ends[2]], [], [], 0)[0]
        return greeting, json.loads(os.read(ends[2], 1 << 16)) if answered else None


def line(**members):
    return json.dumps(HELLO | members).encode() + b"\n"


@pytest.mark.parametrize("request_id", [1, -5, "text", ""])
def test_a_plain_initialize_is_answered_and_what_follows_is_handed_on(request_id):
    greeting, answer = greeted(line(id=request_id) + b'{"half')
    assert answer["id"] == request_id
    assert answer["result"]["protocolVersion"] == 1
    assert "MY_KEY" in answer["result"]["authMethods"][0]["description"]
    assert greeting == Greeting(b'{"half', {"protocolVersion": 1})


def test_the_sessions_that_it_can_list_resume_close_and_delete_are_offered_and_forks_when_switched_on():
    offered = greeted(line())[1]["result"]["agentCapabilities"]["sessionCapabilities"]
    assert offered == {"list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {}}
    again = greeted(line(), fork=True)[1]["result"]["agentCapabilities"]["sessionCapabilities"]
    assert again == {**offered, "fork": {}}


def test_a_provider_without_a_key_offers_no_way_to_sign_in():
    result = greeted(line(), variable=None)[1]["result"]
    assert result["authMethods"] == []
    assert "auth" not in result["agentCapabilities"]


TERMINAL = {"type": "terminal", "id": "login", "name": "Log in", "args": ["login"]}


@pytest.mark.parametrize(
    ("capabilities", "terminal"),
    [
        ({}, None),
        ({"auth": None}, None),
        ({"auth": {"terminal": "yes"}}, None),
        ({"auth": [], "_meta": {"terminal-auth": True}}, None),
        ({"auth": {"terminal": True}}, TERMINAL),
        ({"auth": {"terminal": True}, "_meta": {"terminal-auth": False}}, TERMINAL),
        (
            {"auth": {"terminal": True}, "_meta": {"terminal-auth": True}},
            TERMINAL
            | {
                "_meta": {
                    "terminal-auth": {
                        "command": "/bin/dsh-acp-agent",
                        "args": ["--model", "m", "login"],
                        "env": {"DSH_MODEL": "n"},
                        "label": "dsh-acp-agent login",
                    }
                }
            },
        ),
    ],
)
def test_a_client_with_a_terminal_is_told_how_to_log_in_there(capabilities, terminal):
    result = greeted(line(params={"protocolVersion": 1, "clientCapabilities": capabilities}))[1]["result"]
    assert result["agentCapabilities"]["auth"] == {"logout": {}}
    first, *rest = result["authMethods"]
    assert first["id"] == "api-key"
    for method in rest:
        assert "Asks for the key of deepseek" in method.pop("description")
    assert rest == ([terminal] if terminal else [])


@pytest.mark.parametrize(
    "first",
    [
        b"\n",
        b"garbage\n",
        b"[]\n",
        b"42\n",
        b"\xff\n",
        b"\xef\xbb\xbf" + line(),
        b"[" * 100_000 + b"\n",
        b"x" * 70_000,
        line(method="session/new"),
        line(jsonrpc="1.0"),
        line(id=None),
        line(id=True),
        line(id=1.5),
        line(id="\u00e9"),
        line(params=None),
        line(params=[1]),
        line(params={}),
        line(result={}),
        line(error={}),
        line(params={"protocolVersion": 1, "x": float("nan")}),
        line(params={"protocolVersion": 1, "x": [[[]]] * 60}),
    ],
)
def test_everything_else_is_handed_on_whole_and_not_answered(first):
    with pipes() as ends:
        os.set_blocking(ends[1], False)
        sent = os.write(ends[1], first[:65536])
        greeting = greet(ends[0], ends[3], sign_in(), fork=False, offer=None, parent_alive=lambda: True)
        assert not select.select([ends[2]], [], [], 0)[0]
    assert greeting == Greeting(first[:sent], None)


@pytest.mark.parametrize("data", [b"", b'{"half', line()[:-1]])
def test_the_end_of_the_input_hands_on_what_was_read_and_stays_the_end(data):
    with pipes() as ends:
        os.write(ends[1], data)
        keep = os.dup(ends[0])
        close(ends, 1)
        greeting = greet(ends[0], ends[3], sign_in(), fork=False, offer=None, parent_alive=lambda: True)
        assert greeting == Greeting(data, None)
        assert os.read(ends[0], 10) == b""
        assert not os.get_inheritable(ends[0])
        os.close(keep)


def test_a_reader_that_is_gone_ends_the_input_too():
    with pipes() as ends:
        os.write(ends[1], line())
        close(ends, 2)
        greeting = greet(ends[0], ends[3], sign_in(), fork=False, offer=None, parent_alive=lambda: True)
        assert greeting.initialize_params == {"protocolVersion": 1}
        assert os.read(ends[0], 10) == b""


def test_a_silent_client_is_waited_for_as_long_as_the_parent_lives():
    alive = iter([True, False])
    with pipes() as ends:
        os.write(ends[1], b'{"half')
        greeting = greet(
            ends[0], ends[3], sign_in(), fork=False, offer=None, parent_alive=lambda: next(alive), poll_seconds=0
        )
    assert greeting == Greeting(b'{"half', None)
    assert list(alive) == []


def new_session(**members):
    params = {"cwd": "/", "mcpServers": []}
    frame = {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params} | members
    return json.dumps(frame).encode() + b"\n"


def opened(data, *, end=False, offer=OFFER):
    """(greeting, the frames that were answered) to a client that is at home in sessions."""
    with pipes() as ends:
        os.write(ends[1], data)
        if end:
            close(ends, 1)
        greeting = greet(ends[0], ends[3], sign_in(None), fork=False, offer=offer, parent_alive=lambda: True)
        answered = select.select([ends[2]], [], [], 0)[0]
        return greeting, [json.loads(each) for each in os.read(ends[2], 1 << 16).splitlines()] if answered else []


def test_a_session_new_right_behind_it_is_answered_too_and_the_rest_is_handed_on():
    greeting, (_hello, answer) = opened(
        line() + new_session() + b'{"half', offer=OFFER._replace(default=OFFER.default._replace(mode="full"))
    )
    assert answer["id"] == 2
    assert answer["result"]["modes"]["currentModeId"] == "full"
    assert [mode["id"] for mode in answer["result"]["modes"]["availableModes"]] == [
        "read-only",
        "ask",
        "auto-edit",
        "full",
    ]
    assert answer["result"]["sessionId"] == greeting.opened.session_id
    assert greeting.opened.params == {"cwd": "/", "mcpServers": []}
    assert greeting.preread == b'{"half'


def test_further_directories_that_exist_are_plain():
    params = {"cwd": "/", "mcpServers": None, "additionalDirectories": ["/dev", "/"]}
    assert opened(line() + new_session(params=params))[0].opened.params == params


def test_each_session_has_an_id_of_its_own():
    ids = {opened(line() + new_session())[0].opened.session_id for _ in range(3)}
    assert len(ids) == 3


@pytest.mark.parametrize(
    "second",
    [
        b"",
        b'{"half',
        b"garbage\n",
        new_session(method="session/load"),
        new_session(id=None),
        new_session(params={}),
        new_session(params={"cwd": 1}),
        new_session(params={"cwd": "relative"}),
        new_session(params={"cwd": "/does/not/exist"}),
        new_session(params={"cwd": "/", "mcpServers": {}}),
        new_session(params={"cwd": "/", "additionalDirectories": "/"}),
        new_session(params={"cwd": "/", "additionalDirectories": ["relative"]}),
        new_session(params={"cwd": "/", "additionalDirectories": ["/", "/does/not/exist"]}),
        new_session(params={"cwd": "/", "additionalDirectories": [7]}),
        new_session(params={"cwd": "/", "mcp_servers": 5}),
        new_session(params={"cwd": "/", "mcpServers": [{"name": "\ud800"}]}),
        b"x" * 60_000,
    ],
)
@pytest.mark.parametrize("end", [False, True])
def test_what_is_no_plain_session_new_is_handed_on_whole(second, end):
    greeting, answers = opened(line() + second, end=end)
    assert len(answers) == 1
    assert greeting == Greeting(second, {"protocolVersion": 1}, None)


def test_without_an_offer_no_session_is_opened():
    greeting, answers = opened(line() + new_session(), offer=None)
    assert len(answers) == 1
    assert greeting == Greeting(new_session(), {"protocolVersion": 1}, None)


def test_a_long_second_line_is_not_read_to_its_end():
    with pipes() as ends:
        os.write(ends[1], line())
        os.write(ends[1], b"x" * 65_000)
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 1 << 20)
        os.write(ends[1], b"y" * 70_000)
        greeting = greet(ends[0], ends[3], sign_in(None), fork=False, offer="ask", parent_alive=lambda: True)
        rest = os.read(ends[0], 1 << 20)
    assert greeting.preread + rest == b"x" * 65_000 + b"y" * 70_000
    assert greeting.opened is None
