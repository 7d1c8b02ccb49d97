"""What an endpoint says about a key, and when its answer says nothing."""

import dataclasses
import json

import anyio
import pytest

from acp_bridge.testing.model_server import model_server
from agent_loop.errors import LlmError
from agent_loop.llm.openai_compat.http import TcpTransport
from agent_loop.llm.openai_compat.key_check import check_key
from agent_loop.llm.openai_compat.models import DEEPSEEK, ModelProfile, ProviderProfile
from agent_loop.llm.openai_compat.seam import HttpResponse, HttpTransport

OTHER = ProviderProfile("other", "https://other.test/v1/", "OTHER_KEY", (ModelProfile("small"), ModelProfile("big")))
KEY = "sk-0123456789"


class Answer(HttpResponse):
    def __init__(self, status, text="", *, endless=False):
        self.status = status
        self.headers = {}
        self.pieces = [json.dumps({"error": {"message": text}}).encode()]
        self.endless = endless
        self.closed = False

    async def read(self):
        if self.endless:
            return b"x" * 50_000
        return self.pieces.pop() if self.pieces else b""

    def interrupt(self):
        raise AssertionError("nothing is waited for")

    async def aclose(self):
        self.closed = True


class Endpoint(HttpTransport):
    """Answers by request: `models`, `models without key`, `chat`; keeps what was asked. A text is a failure."""

    def __init__(self, **answers):
        self.answers = {name.replace("_", " "): answer for name, answer in answers.items()}
        self.asked = []

    async def get(self, url, *, headers):
        assert url.endswith("/models")
        return self._answer("models" if headers.get("authorization") == f"Bearer {KEY}" else "models without key")

    async def post(self, url, *, headers, body):
        assert url.endswith("/chat/completions")
        assert headers["authorization"] == f"Bearer {KEY}"
        assert json.loads(body)["max_tokens"] == 1
        return self._answer("chat")

    async def aclose(self):
        """Nothing is open."""

    def _answer(self, name):
        self.asked.append(name)
        if isinstance(self.answers[name], str):
            raise LlmError(self.answers[name], "TRANSPORT")
        return self.answers[name]


@pytest.mark.parametrize(
    ("provider", "answers", "kind", "says"),
    [
        (DEEPSEEK, {"models": Answer(200)}, "accepted", "deepseek accepts the key"),
        (DEEPSEEK, {"models": Answer(401, "no such key")}, "rejected", "rejected the API key (HTTP 401): no such key"),
        (OTHER, {"models": Answer(403)}, "rejected", "other rejected the API key"),
        (OTHER, {"models": Answer(200), "models_without_key": Answer(401)}, "accepted", "other accepts the key"),
        (
            OTHER,
            {"models": Answer(200), "models_without_key": Answer(200), "chat": Answer(401)},
            "rejected",
            "other rejected the API key",
        ),
        (OTHER, {"models": Answer(404), "chat": Answer(200)}, "accepted", "other accepts the key"),
        (
            OTHER,
            {"models": Answer(404), "chat": Answer(402)},
            "accepted",
            "knows the key, but: other refused the request",
        ),
        (OTHER, {"models": Answer(404), "chat": Answer(429)}, "accepted", "knows the key, but: other limits the rate"),
        (OTHER, {"models": Answer(500), "chat": Answer(503, "asleep")}, "unknown", "other failed (HTTP 503): asleep"),
        (OTHER, {"models": Answer(200, endless=True), "models_without_key": Answer(401)}, "accepted", "accepts"),
        (OTHER, {"models": "cannot reach it"}, "unknown", "cannot reach it"),
    ],
)
async def test_only_an_answer_that_depends_on_the_key_decides(provider, answers, kind, says):
    endpoint = Endpoint(**answers)
    verdict = await check_key(provider, KEY, endpoint)
    assert (verdict.kind, says in verdict.sentence) == (kind, True), verdict
    assert endpoint.asked == list(endpoint.answers)
    assert all(answer.closed for answer in endpoint.answers.values() if isinstance(answer, Answer))


async def test_an_endpoint_that_is_silent_is_not_waited_for_long():
    class Silent(Endpoint):
        async def get(self, url, *, headers):
            await anyio.sleep_forever()

    verdict = await check_key(OTHER, KEY, Silent(), seconds=0.01)
    assert (verdict.kind, verdict.sentence) == ("unknown", "other did not answer within 0.01 s")


async def test_over_real_http_the_model_that_is_asked_is_the_first_one():
    async with model_server([{"text": ["hi"]}]) as server:
        provider = dataclasses.replace(OTHER, base_url=f"{server.base_url}/v1/")
        transport = TcpTransport(provider.base_url)
        verdict = await check_key(provider, KEY, transport)
        await transport.aclose()
        asked = [(request.method, request.path, request.body.get("model")) for request in server.requests]
    assert verdict.kind == "accepted"
    assert asked == [("GET", "/v1/models", None), ("POST", "/v1/chat/completions", "small")]
