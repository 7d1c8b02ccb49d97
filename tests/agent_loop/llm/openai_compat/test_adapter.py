"""The adapter against a real server on 127.0.0.1 (contract llm.md §5)."""

import asyncio
import dataclasses
from contextlib import aclosing, asynccontextmanager
from email.utils import formatdate

import anyio
import pytest

from acp_bridge.testing.model_server import model_server
from agent_loop.abort import AbortController
from agent_loop.errors import LlmError
from agent_loop.hooks import Hooks
from agent_loop.llm.assembler import BlockAssembler
from agent_loop.llm.history import normalise
from agent_loop.llm.openai_compat.adapter import OpenAICompatAdapter
from agent_loop.llm.openai_compat.models import DEEPSEEK, ModelProfile, ProviderProfile
from agent_loop.llm.openai_compat.seam import HttpResponse, HttpTransport
from agent_loop.llm.service import LlmService
from agent_loop.vocabulary import text_block
from tests.support.immediate_runtime import ImmediateRuntime
from tests.support.llm_request import llm_request, user

KEY = "sk-planted-0123456789"
HELLO = {"reasoning": ["hm"], "text": ["Hel", "lo"], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}


def giving(*keys):
    """A credential that gives these, one a call, and the last of them for ever."""
    rest = list(keys)

    async def credential():
        return rest.pop(0) if len(rest) > 1 else rest[0]

    return credential


@asynccontextmanager
async def deepseek(script, *, key=KEY, idle_timeout=60.0):
    """The server, the adapter that talks to it, and its runtime."""
    runtime = ImmediateRuntime()
    async with model_server(script) as server:
        provider = dataclasses.replace(DEEPSEEK, base_url=server.base_url)
        adapter = OpenAICompatAdapter(provider, credential=giving(key), runtime=runtime, idle_timeout=idle_timeout)
        try:
            with anyio.fail_after(30):
                yield server, adapter, runtime
        finally:
            await adapter.aclose()


def served(adapter, runtime):
    """The service around the adapter: what retries."""
    service = LlmService(Hooks(lambda _name, error: None), runtime)
    service.register_adapter([model.id for model in DEEPSEEK.models], adapter)
    return service


async def collect(source, request=None):
    assembler = BlockAssembler()
    chunks = []
    async with aclosing(source.stream(request or llm_request())) as stream:
        async for chunk in stream:
            chunks.append(chunk)
            assembler.add(chunk)
    return chunks, assembler


async def failure(source, request=None):
    with pytest.raises(LlmError) as caught:
        await collect(source, request)
    return caught.value


async def test_reasoning_and_text_stream_in_order_with_usage_before_finish():
    async with deepseek([HELLO]) as (server, adapter, _):
        chunks, assembler = await collect(adapter)
    assert [chunk["type"] for chunk in chunks] == [
        "block-start",
        "reasoning-delta",
        "block-start",
        "text-delta",
        "text-delta",
        "block-end",
        "block-end",
        "usage",
        "finish",
    ]
    assert assembler.blocks() == [{"type": "reasoning", "text": "hm"}, text_block("Hello")]
    assert assembler.usage == {"inputTokens": 9, "outputTokens": 3}
    request = server.requests[0]
    assert request.path == "/chat/completions"
    assert request.headers["authorization"] == "present"
    assert request.headers["accept-encoding"] == "identity"
    assert request.body == {
        "model": "deepseek-v4-flash",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_a_tool_call_round_trip_sends_the_reasoning_back():
    call = {"id": "c1", "name": "bash", "arguments": ['{"command"', ': "ls"}']}
    script = [{"reasoning": ["I ", "look\n"], "tool_calls": [call]}, {"text": ["done"]}]
    async with deepseek(script) as (server, adapter, _):
        _, assembler = await collect(adapter)
        assert assembler.finish == {"kind": "tool-calls"}
        result = {"type": "tool-result", "toolCallId": "c1", "content": [text_block("a.txt\n")]}
        history = [user("hi"), assembler.message(), {"role": "user", "content": [result]}]
        messages = normalise(history, reasoning="echo", merge_users=False)
        await collect(adapter, llm_request(messages=messages, step=2))
    assert server.requests[1].body["messages"][1:] == [
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "I look\n",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt\n"},
    ]


async def test_usage_is_read_attached_to_the_finish_and_trailing_alike():
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 8}
    trailing = {"stream": [{"text": ["x"], "finish": "stop"}, {"usage": usage}, {"done": True}]}
    async with deepseek([{"text": ["x"], "usage": usage}, trailing]) as (_, adapter, _):
        (attached, _), (trailed, _) = await collect(adapter), await collect(adapter)
    assert attached == trailed
    assert attached[-2]["usage"] == {"inputTokens": 1, "outputTokens": 3, "cacheReadTokens": 8}


async def test_one_byte_at_a_time_gives_the_same_chunks():
    answer = {**HELLO, "text": ["H\u00e9\u2028l", "lo \U0001f40d"]}
    async with deepseek([answer, {**answer, "one_byte": True}]) as (_, adapter, _):
        (whole, _), (single, _) = await collect(adapter), await collect(adapter)
    assert whole == single


async def test_keep_alive_comments_and_blank_lines_are_no_chunks():
    noise = {"raw": "\n\r\n: keep-alive\n\n"}
    ops = [noise, {"text": ["a"]}, noise, {"text": ["b"], "finish": "stop"}, noise, {"done": True}, noise]
    async with deepseek([{"stream": ops}]) as (_, adapter, _):
        _, assembler = await collect(adapter)
    assert assembler.blocks() == [text_block("ab")]


async def test_a_stream_that_ends_without_its_last_line_end_is_complete():
    ops = [{"text": ["a"], "finish": "stop"}, {"raw": "data: [DONE]"}]
    async with deepseek([{"stream": ops}]) as (_, adapter, _):
        _, assembler = await collect(adapter)
    assert assembler.finish == {"kind": "stop"}


async def test_the_connection_is_kept_for_the_next_step():
    async with deepseek([HELLO, {"status": 404, "body": "no"}, HELLO]) as (server, adapter, _):
        await collect(adapter)
        await failure(adapter)
        await collect(adapter)
    assert [request.connection for request in server.requests] == [0, 0, 0]


async def test_an_endless_body_behind_done_holds_nothing_up():
    ops = [{"text": ["a"], "finish": "stop"}, {"done": True}, {"silence": True}]
    async with deepseek([{"stream": ops}]) as (server, adapter, _):
        _, assembler = await collect(adapter)
        await server.requests[0].disconnected.wait()
    assert assembler.blocks() == [text_block("a")]


async def test_a_cut_behind_done_is_no_failure():
    ops = [{"text": ["a"], "finish": "stop"}, {"done": True}, {"cut": True}]
    async with deepseek([{"stream": ops}]) as (_, adapter, _):
        _, assembler = await collect(adapter)
    assert assembler.finish == {"kind": "stop"}


async def test_a_rejected_key_is_an_auth_error_without_the_key():
    body = {"error": {"message": f"Authentication Fails, your api key: {KEY} is invalid"}}
    async with deepseek([{"status": 401, "body": body}]) as (server, adapter, runtime):
        error = await failure(served(adapter, runtime))
    assert (error.code, error.status) == ("AUTH", 401)
    assert error.message == (
        "deepseek rejected the API key (HTTP 401): Authentication Fails, your api key: [key] is invalid"
    )
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert len(server.requests) == 1


async def test_a_rate_limit_is_retried_after_the_wait_that_it_asks_for():
    notices = []
    limited = {"status": 429, "headers": {"retry-after": "3"}, "body": {"error": {"message": "slow down"}}}
    async with deepseek([limited, HELLO]) as (_, adapter, runtime):
        _, assembler = await collect(served(adapter, runtime), llm_request(on_retry=notices.append))
    assert assembler.blocks()[1] == text_block("Hello")
    assert [(notice.attempt, notice.code, notice.delay_ms) for notice in notices] == [(1, "RATE_LIMIT", 3000)]
    assert runtime.slept == [3.0]


async def test_a_wait_above_the_cap_is_refused_with_a_sentence():
    runtime = ImmediateRuntime()
    date = formatdate(runtime.now_ms() / 1000 + 60, usegmt=True)
    async with deepseek([{"status": 503, "headers": {"retry-after": date}}]) as (server, adapter, runtime):
        error = await failure(served(adapter, runtime))
    assert error.code == "SERVER"
    assert "asks to wait 60 s" in error.message
    assert len(server.requests) == 1


async def test_a_server_error_then_success_is_one_answer():
    async with deepseek([{"status": 500, "body": "oops"}, HELLO]) as (server, adapter, runtime):
        _, assembler = await collect(served(adapter, runtime))
    assert assembler.blocks()[1] == text_block("Hello")
    assert len(server.requests) == 2


async def test_an_empty_answer_is_tried_again():
    async with deepseek([{"finish": "stop"}, HELLO]) as (server, adapter, runtime):
        await collect(served(adapter, runtime))
    assert len(server.requests) == 2


async def test_an_error_inside_a_stream_is_retried_only_before_the_first_chunk():
    event = {"event": {"error": {"message": "overloaded"}}}
    script = [{"stream": [event]}, {"stream": [{"text": ["half"]}, event]}]
    async with deepseek(script) as (server, adapter, runtime):
        error = await failure(served(adapter, runtime))
    assert error.message == "deepseek failed inside its stream: overloaded"
    assert len(server.requests) == 2


async def test_an_error_event_that_ends_the_stream_without_a_blank_line_is_heard():
    async with deepseek([{"stream": [{"raw": 'event: error\ndata: {"message":"bad luck"}'}]}]) as (_, adapter, _):
        assert "bad luck" in (await failure(adapter)).message


async def test_silence_is_ended_by_the_watchdog():
    async with deepseek([{"stream": [{"text": ["a"]}, {"silence": True}]}], idle_timeout=0.1) as (server, adapter, _):
        error = await failure(adapter)
        await server.requests[0].disconnected.wait()
    assert (error.code, error.message) == ("TIMEOUT", "deepseek sent nothing for 0.1 s")


async def test_a_connection_cut_in_mid_answer_names_the_base_url():
    async with deepseek([{"stream": [{"text": ["a"]}, {"cut": True}]}]) as (server, adapter, _):
        error = await failure(adapter)
    assert error.code == "TRANSPORT"
    assert error.message.startswith(f"the connection to {server.base_url} broke: ")


@pytest.mark.parametrize("tail", [[], [{"raw": 'data: {"choices":[{"del'}], [{"raw": "data: {"}, {"raw": "\n"}]])
async def test_a_stream_without_done_was_closed_in_mid_answer(tail):
    async with deepseek([{"stream": [{"text": ["a"]}, *tail]}]) as (_, adapter, _):
        error = await failure(adapter)
    assert (error.code, error.message) == ("STREAM_CLOSED", "deepseek ended its stream in mid-answer")


async def test_bad_json_in_a_whole_event_is_a_malformed_response():
    async with deepseek([{"stream": [{"raw": "data: {oops}\n\n"}]}]) as (_, adapter, _):
        assert (await failure(adapter)).code == "MALFORMED_RESPONSE"


async def test_an_answer_cut_by_length_in_the_middle_of_arguments_keeps_them_raw():
    call = {"id": "c1", "name": "bash", "arguments": ['{"command": "rm -rf ']}
    async with deepseek([{"tool_calls": [call], "finish": "length"}]) as (_, adapter, _):
        _, assembler = await collect(adapter)
    assert assembler.finish == {"kind": "max-tokens"}
    assert assembler.blocks()[0]["arguments"] == '{"command": "rm -rf '


async def test_plain_json_where_a_stream_was_asked_for_is_an_error():
    async with deepseek([{"body": {"error": {"message": "no credits", "code": 402}}}]) as (_, adapter, _):
        error = await failure(adapter)
    assert error.code == "QUOTA"
    assert "no credits" in error.message


async def test_a_refusal_whose_explanation_breaks_off_keeps_its_code():
    answer = {"status": 401, "headers": {"content-length": "100"}, "body": "half", "cut": True}
    async with deepseek([answer]) as (_, adapter, _):
        error = await failure(adapter)
    assert error.code == "AUTH"
    assert error.message.endswith("(HTTP 401): half")


async def test_an_endless_explanation_is_read_in_part():
    async with deepseek([{"status": 500, "body": "x" * 1_000_000}]) as (_, adapter, _):
        assert (await failure(adapter)).code == "SERVER"


async def test_nobody_listening_is_a_transport_error_that_names_the_address():
    async with model_server([]) as server:
        base_url = server.base_url
    provider = dataclasses.replace(DEEPSEEK, base_url=base_url.replace("http://", "http://user:secret@"))
    adapter = OpenAICompatAdapter(provider, credential=giving(KEY), runtime=ImmediateRuntime())
    error = await failure(adapter)
    await adapter.aclose()
    assert error.code == "TRANSPORT"
    assert error.message.startswith(f"cannot reach {base_url}: ")


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        ("ftp://127.0.0.1", "cannot reach ftp://127.0.0.1: "),
        ("nonsense", "cannot reach nonsense: "),
        ("http://[::1", "the provider's base URL is no valid address"),
        ("http://user:pa/ss@host", "the provider's base URL is no valid address"),
        ("http://127.0.0.1:99999", "the provider's base URL is no valid address"),
    ],
)
async def test_an_address_that_is_none_is_a_transport_error(base_url, message):
    provider = dataclasses.replace(DEEPSEEK, base_url=base_url)
    adapter = OpenAICompatAdapter(provider, credential=giving(KEY), runtime=ImmediateRuntime())
    error = await failure(adapter)
    await adapter.aclose()
    assert error.code == "TRANSPORT"
    assert error.message.startswith(message)


async def abort_during(adapter, server, moment):
    """Abort the only request at `moment(server)`; gives its error."""
    signal = AbortController()

    async def abort():
        await moment(server)
        signal.abort("session/cancel")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(abort)
        return await failure(adapter, llm_request(signal=signal))


async def test_an_abort_before_the_head_of_the_answer_closes_the_connection():
    async with deepseek([{"gate": "head"}]) as (server, adapter, _):
        error = await abort_during(adapter, server, lambda server: server.reached("head"))
        await server.requests[0].disconnected.wait()
    assert (error.code, error.message) == ("ABORTED", "the model call was cancelled (session/cancel)")


async def test_an_abort_in_mid_stream_closes_the_connection():
    async with deepseek([{"stream": [{"text": ["a"]}, {"gate": "middle"}]}]) as (server, adapter, _):
        error = await abort_during(adapter, server, lambda server: server.reached("middle"))
        await server.requests[0].disconnected.wait()
    assert error.code == "ABORTED"


async def test_an_abort_between_two_chunks_that_have_arrived_ends_the_stream():
    signal = AbortController()
    async with deepseek([HELLO]) as (_, adapter, _), aclosing(adapter.stream(llm_request(signal=signal))) as stream:
        await anext(stream)
        signal.abort("session/cancel")
        with pytest.raises(LlmError) as caught:
            await anext(stream)
    assert caught.value.code == "ABORTED"


async def test_a_signal_that_has_aborted_sends_nothing():
    signal = AbortController()
    signal.abort("session/cancel")
    async with deepseek([HELLO]) as (server, adapter, _):
        assert (await failure(adapter, llm_request(signal=signal))).code == "ABORTED"
    assert server.requests == []


async def test_a_consumer_that_closes_the_stream_closes_the_connection():
    async with deepseek([{"stream": [{"text": ["a"]}, {"silence": True}]}]) as (server, adapter, _):
        stream = adapter.stream(llm_request())
        await anext(stream)
        await stream.aclose()
        await server.requests[0].disconnected.wait()


async def test_a_consumer_that_is_cancelled_closes_the_connection():
    async with deepseek([{"stream": [{"text": ["a"]}, {"gate": "middle"}]}]) as (server, adapter, _):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, adapter)
            await server.reached("middle")
            tasks.cancel_scope.cancel()
        await server.requests[0].disconnected.wait()


async def test_a_second_call_runs_beside_the_first():
    script = [{"stream": [{"gate": "first"}, {"text": ["one"], "finish": "stop"}, {"done": True}]}, {"text": ["two"]}]
    async with deepseek(script) as (server, adapter, _):
        first = asyncio.ensure_future(collect(adapter))
        await server.reached("first")
        _, second = await collect(adapter)
        server.release("first")
        _, assembler = await first
    assert (assembler.blocks(), second.blocks()) == ([text_block("one")], [text_block("two")])


class CannedTransport(HttpTransport):
    """Answers every post with `data: [DONE]` after one text, and keeps what was posted."""

    def __init__(self, response=None):
        self.response = response
        self.posts = []
        self.closes = 0

    async def post(self, url, *, headers, body):
        self.posts.append((url, dict(headers)))
        return self.response or CannedResponse()

    async def get(self, url, *, headers):
        raise AssertionError("nobody asks this transport for a page")

    async def aclose(self):
        self.closes += 1


class CannedResponse(HttpResponse):
    def __init__(self):
        self.status = 200
        self.headers = {}
        self.pieces = [b'data: {"choices":[{"delta":{"content":"x"}}]}\n\ndata: [DONE]\n\n']

    async def read(self):
        return self.pieces.pop() if self.pieces else b""

    def interrupt(self):
        raise AssertionError("nothing is waited for")

    async def aclose(self):
        pass


class AbortingResponse(CannedResponse):
    """A refusal whose explanation never comes: while it is waited for, the call is aborted."""

    def __init__(self, signal):
        super().__init__()
        self.status = 500
        self.signal = signal
        self.closed = False

    async def read(self):
        self.signal.abort("session/cancel")
        await anyio.sleep_forever()

    async def aclose(self):
        self.closed = True


def local_adapter(credential, key_variable=None, transport=None):
    provider = ProviderProfile("ollama", "http://127.0.0.1:1/v1/", key_variable, (ModelProfile("qwen"),))
    return OpenAICompatAdapter(
        provider, credential=credential, runtime=ImmediateRuntime(), transport=transport or CannedTransport()
    )


async def test_the_key_is_looked_up_for_each_call():
    transport = CannedTransport()
    adapter = local_adapter(giving(" sk-one\n", "sk-two"), "OLLAMA_KEY", transport)
    for _ in range(2):
        await collect(adapter, llm_request(model="qwen"))
    assert [url for url, _ in transport.posts] == ["http://127.0.0.1:1/v1/chat/completions"] * 2
    assert [headers["authorization"] for _, headers in transport.posts] == ["Bearer sk-one", "Bearer sk-two"]


async def test_a_provider_without_a_key_gets_no_authorization():
    transport = CannedTransport()
    await collect(local_adapter(giving(None), None, transport), llm_request(model="qwen"))
    assert "authorization" not in transport.posts[0][1]


async def test_a_missing_key_names_the_variable():
    error = await failure(local_adapter(giving(None), "OLLAMA_KEY"), llm_request(model="qwen"))
    assert error.code == "NO_CREDENTIAL"
    assert "set OLLAMA_KEY" in error.message


@pytest.mark.parametrize("key", ["sk-\u00e9", "sk-a\r\nx-evil: 1"])
async def test_a_key_that_no_header_can_carry_is_refused_unsent_and_unnamed(key):
    transport = CannedTransport()
    error = await failure(local_adapter(giving(key), "OLLAMA_KEY", transport), llm_request(model="qwen"))
    assert error.code == "AUTH"
    assert "sk-" not in error.message
    assert transport.posts == []


async def test_a_model_that_the_provider_does_not_list_is_refused():
    error = await failure(local_adapter(giving(None)), llm_request(model="gpt"))
    assert (error.code, error.message) == ("UNKNOWN_MODEL", "ollama has no model 'gpt'")


async def test_what_is_prepared_serves_the_first_call():
    async with deepseek([HELLO]) as (server, adapter, _runtime):
        adapter.prepare()
        adapter.prepare()
        chunks, _assembler = await collect(adapter)
        assert chunks[-1]["type"] == "finish"
        assert len(server.requests) == 1


async def test_what_cannot_be_prepared_is_told_by_the_first_call():
    provider = ProviderProfile("odd", "http://[", None, (ModelProfile("m", reasoning="none"),))
    adapter = OpenAICompatAdapter(provider, credential=giving(None), runtime=ImmediateRuntime())
    adapter.prepare()
    error = await failure(adapter, llm_request(model="m"))
    assert error.code == "TRANSPORT"


async def test_closing_twice_closes_the_connections_once():
    transport = CannedTransport()
    adapter = local_adapter(giving(None), None, transport)
    await adapter.aclose()
    await adapter.aclose()
    assert transport.closes == 1


async def test_an_abort_while_an_explanation_is_read_is_an_abort():
    signal = AbortController()
    response = AbortingResponse(signal)
    adapter = local_adapter(giving(None), None, CannedTransport(response))
    assert (await failure(adapter, llm_request(model="qwen", signal=signal))).code == "ABORTED"
    assert response.closed
