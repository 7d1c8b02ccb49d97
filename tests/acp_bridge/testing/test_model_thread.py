import http.client
import threading

import pytest

from acp_bridge.testing.model_thread import addresses, served
from tests.support.model_client import ask_model


def test_a_script_is_served_while_the_block_runs():
    with served([{"text": ["hi"]}]) as server:
        assert '"content":"hi"' in ask_model(server.base_url)[1]
        assert [request.path for request in server.requests] == ["/v1/chat/completions"]
    assert "scripted model" not in [thread.name for thread in threading.enumerate()]


def test_a_wrong_script_fails_when_the_block_is_left():
    with (
        pytest.raises(ValueError, match="unknown op"),
        served([{"stream": [{"sing": "la"}]}]) as server,
        pytest.raises(http.client.IncompleteRead),
    ):
        ask_model(server.base_url)


def test_an_agent_finds_the_model_under_the_usual_names():
    assert addresses("http://x:1") == {
        "OPENAI_BASE_URL": "http://x:1/v1",
        "OPENAI_API_KEY": "local-model",
        "DEEPSEEK_BASE_URL": "http://x:1",
        "DEEPSEEK_API_KEY": "local-model",
    }
