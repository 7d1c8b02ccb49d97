import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from acp_bridge.testing.model_thread import served
from acp_bridge.testing.recording_proxy import recording_proxy
from tests.support.model_client import ask_model

SECRET = "cookie-of-the-provider"


def test_a_stream_is_passed_on_and_kept_event_by_event():
    answer = {"text": ["h\u2028i"], "usage": {"n": 1}, "headers": {"set-cookie": SECRET, "x-request-id": SECRET}}
    with served([answer, answer]) as provider, recording_proxy(provider.base_url, key="real") as proxy:
        assert ask_model(proxy.url)[1] == ask_model(provider.base_url)[1].replace("chatcmpl-2", "chatcmpl-1")
        (kept,) = proxy.answers()
    assert kept["stream"][0]["event"]["choices"][0]["delta"] == {"content": "h\u2028i"}
    assert kept["stream"][-1] == {"done": True}
    assert SECRET not in json.dumps(kept)


def test_what_was_kept_is_a_script_that_says_the_same():
    with served([{"text": ["a", "b"]}]) as provider, recording_proxy(provider.base_url, key="k") as proxy:
        first = ask_model(proxy.url)
        kept = proxy.answers()
    with served(kept) as again:
        assert ask_model(again.base_url) == first


def test_the_provider_gets_the_key_and_the_body_of_the_agent():
    with served([{"text": ["x"]}]) as provider, recording_proxy(provider.base_url + "/v1/", key="real") as proxy:
        ask_model(proxy.url, messages=["m"])
        (request,) = provider.requests
    assert request.path == "/v1/chat/completions"
    assert request.body == {"model": "m", "messages": ["m"]}
    assert request.headers["authorization"] == "present"


@pytest.mark.parametrize("body", [{"error": {"message": "slow down"}}, "no json"])
def test_a_refusal_is_kept_with_its_status(body):
    answer = {"status": 429, "headers": {"retry-after": SECRET}, "body": body}
    with served([answer]) as provider, recording_proxy(provider.base_url, key="k") as proxy:
        assert ask_model(proxy.url) == (429, body if isinstance(body, str) else json.dumps(body))
        assert proxy.answers() == [{"status": 429, "body": body}]


def test_other_paths_are_passed_on_and_not_kept():
    with served([]) as provider, recording_proxy(provider.base_url, key="k") as proxy:
        status, text = ask_model(proxy.url, "/v1/models", method="GET")
        assert (status, json.loads(text)["error"]) == (404, {"message": "no such path: /models"})
        assert proxy.answers() == []


def event(text: str) -> bytes:
    return b'data: {"say":"%b"}\r\n\r\n' % text.encode()


class Conversation:
    """A provider that is written by hand, behind the proxy, and an agent that has sent it a request."""

    def __init__(self, proxy, listener: socket.socket) -> None:
        self.proxy = proxy
        self.agent = http.client.HTTPConnection(urlsplit(proxy.url).netloc)
        self.agent.request("POST", "/v1/chat/completions", "{}", {"content-type": "application/json"})
        self.provider, _ = listener.accept()
        self.provider.settimeout(30)
        while not self.provider.recv(1 << 16).endswith(b"{}"):
            pass

    def begins(self, kind: str = "text/event-stream") -> None:
        self.provider.sendall(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nset-cookie: {SECRET}\r\n\r\n".encode())
        self.response = self.agent.getresponse()

    def says(self, data: bytes) -> float:
        """Returns a moment when the agent has read it."""
        self.provider.sendall(data)
        assert self.response.read(len(data)) == data
        return time.monotonic()

    def is_left(self) -> None:
        """The agent closes its connection; returns when the provider has seen that."""
        self.agent.close()
        assert self.provider.recv(1) == b""


@contextlib.contextmanager
def asked() -> Iterator[Conversation]:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        recording_proxy(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", key="k") as proxy,
    ):
        talk = Conversation(proxy, listener)
        with talk.provider:
            yield talk


def test_an_answer_that_the_agent_breaks_off_is_kept_so_far_and_then_silence():
    with asked() as talk:
        talk.begins()
        talk.says(event("a") + b'data: {"half')
        assert talk.proxy.answers() == [{"stream": [{"event": {"say": "a"}}, {"silence": True}]}]
        talk.is_left()
        assert talk.proxy.answers() == [{"stream": [{"event": {"say": "a"}}, {"silence": True}]}]


def test_what_came_after_the_cancel_is_not_kept():
    with asked() as talk:
        talk.begins()
        before = talk.says(event("a"))
        cancel = talk.says(event("b"))
        talk.says(event("c"))
        talk.is_left()
        (kept,) = talk.proxy.answers(cancels=[before, cancel, time.monotonic()])
        assert kept["stream"] == [{"event": {"say": "a"}}, {"event": {"say": "b"}}, {"silence": True}]
        (kept,) = talk.proxy.answers(cancels=[time.monotonic()])
        assert len(kept["stream"]) == 4


def test_an_agent_that_leaves_before_the_first_word_has_heard_silence():
    with asked() as talk:
        talk.is_left()
        assert talk.proxy.answers() == [{"stream": [{"silence": True}]}]


def test_an_agent_that_leaves_after_the_last_word_has_heard_it_all():
    with asked() as talk:
        talk.begins()
        talk.says(event("a") + b"data: [DONE]\n\n")
        talk.is_left()
        assert talk.proxy.answers() == [{"stream": [{"event": {"say": "a"}}, {"done": True}]}]


def test_half_a_body_that_is_no_stream_is_silence():
    with asked() as talk:
        talk.begins("application/json")
        talk.says(b'{"half')
        talk.is_left()
        assert talk.proxy.answers() == [{"stream": [{"silence": True}]}]


def test_an_answer_that_the_provider_breaks_off_is_not_kept():
    cut = {"stream": [{"text": ["x"]}, {"cut": True}]}
    with served([cut]) as provider, recording_proxy(provider.base_url, key="k") as proxy:
        with pytest.raises(http.client.IncompleteRead):
            ask_model(proxy.url)
        assert proxy.answers() == []


def test_a_provider_that_is_not_there_is_an_end_of_the_connection():
    with recording_proxy("http://127.0.0.1:1", key="k") as proxy:
        with pytest.raises(http.client.RemoteDisconnected):
            ask_model(proxy.url)
        assert proxy.answers() == []
