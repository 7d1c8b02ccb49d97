"""The adapter against the real DeepSeek endpoint: text, a tool call, cancel, and the reasoning round trip.

Skipped without a key. The answers are the model's own, so only their shape is asserted.
"""

import json
import os
from contextlib import asynccontextmanager

import anyio
import pytest

from agent_loop.abort import AbortController
from agent_loop.errors import LlmError
from agent_loop.hooks import Hooks
from agent_loop.llm.assembler import BlockAssembler
from agent_loop.llm.history import normalise
from agent_loop.llm.openai_compat.adapter import OpenAICompatAdapter
from agent_loop.llm.openai_compat.models import DEEPSEEK
from agent_loop.llm.service import LlmService
from agent_loop.runtime import SystemRuntime
from agent_loop.vocabulary import text_block
from tests.support.llm_request import llm_request, user

pytestmark = pytest.mark.skipif(
    not os.environ.get("DEEPSEEK_API_KEY"), reason="needs DEEPSEEK_API_KEY: it talks to the real endpoint"
)

TOOL = {
    "name": "current_weather",
    "description": "Tells the weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


async def key():
    return os.environ["DEEPSEEK_API_KEY"]


@asynccontextmanager
async def real_service():
    runtime = SystemRuntime()
    adapter = OpenAICompatAdapter(DEEPSEEK, credential=key, runtime=runtime)
    service = LlmService(Hooks(lambda _name, _error: None), runtime)
    service.register_adapter([model.id for model in DEEPSEEK.models], adapter)
    try:
        with anyio.fail_after(180):
            yield service
    finally:
        await service.aclose()


async def ask(service, messages, **fields):
    assembler = BlockAssembler()
    normal = normalise(messages, reasoning="echo", merge_users=False)
    async for chunk in service.stream(llm_request(messages=normal, **fields)):
        assembler.add(chunk)
    return assembler


def of_type(assembler, block_type):
    return [block for block in assembler.blocks() if block["type"] == block_type]


async def test_text_arrives_with_usage_and_a_stop():
    async with real_service() as service:
        answer = await ask(service, [user("Reply with the single word DONE.")])
    assert "DONE" in of_type(answer, "text")[0]["text"]
    assert answer.finish == {"kind": "stop"}
    assert answer.usage["outputTokens"] > 0


async def test_a_tool_call_and_its_reasoning_are_accepted_when_sent_back():
    question = user("What is the weather in Paris? Use the tool.")
    async with real_service() as service:
        first = await ask(service, [question], tools=[TOOL])
        call = of_type(first, "tool-call")[0]
        assert first.finish == {"kind": "tool-calls"}
        assert call["name"] == "current_weather"
        assert json.loads(call["arguments"])["city"]
        result = {"type": "tool-result", "toolCallId": call["id"], "content": [text_block("sunny, 21 C")]}
        history = [question, first.message(), {"role": "user", "content": [result]}]
        second = await ask(service, history, tools=[TOOL], step=2)
        assert of_type(second, "text")
        third = await ask(service, [*history, second.message(), user("Thanks. One word: warm or cold?")], tools=[TOOL])
    assert of_type(third, "text")


async def test_a_cancel_in_mid_stream_ends_it_at_once():
    signal = AbortController()
    async with real_service() as service:
        stream = service.stream(llm_request(messages=[user("Count from 1 to 500.")], signal=signal))
        await anext(stream)
        signal.abort("session/cancel")
        with pytest.raises(LlmError) as caught:
            async for _ in stream:
                pass
        assert caught.value.code == "ABORTED"
        answer = await ask(service, [user("Reply with the single word DONE.")])
    assert of_type(answer, "text")
