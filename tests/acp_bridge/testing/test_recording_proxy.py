import http.client
import json

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


def test_an_answer_that_broke_off_is_not_kept():
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
