"""The model service (contract llm.md §4)."""

import pytest

from agent_loop.errors import LlmError
from agent_loop.hooks import Hooks
from agent_loop.llm.seam import LlmAdapter
from agent_loop.llm.service import LlmService
from tests.support.immediate_runtime import ImmediateRuntime
from tests.support.llm_request import llm_request

FINISH = {"type": "finish", "reason": {"kind": "stop"}}


class NamedAdapter(LlmAdapter):
    """Answers with its name; fails first as often as told; counts its closes."""

    def __init__(self, name, failures=0, close_error=None):
        self.name = name
        self.failures = failures
        self.close_error = close_error
        self.closes = 0

    async def stream(self, request):
        if self.failures:
            self.failures -= 1
            raise LlmError("down", "SERVER")
        yield {"type": "text-delta", "index": 0, "text": self.name}

    async def aclose(self):
        self.closes += 1
        if self.close_error:
            raise self.close_error


def raise_error(_name, error):
    raise error


def make_service():
    hooks = Hooks(raise_error)
    return LlmService(hooks, ImmediateRuntime()), hooks


async def answer(service, model="m", session_id="session-1"):
    return [chunk async for chunk in service.stream(llm_request(model=model, session_id=session_id))]


async def test_a_request_goes_to_the_adapter_of_its_model():
    service, _ = make_service()
    service.register_adapter(["m", "n"], NamedAdapter("first"))
    service.register_adapter(["o"], NamedAdapter("second"))
    assert (await answer(service, "n"))[0]["text"] == "first"
    assert (await answer(service, "o"))[0]["text"] == "second"


async def test_a_model_that_nobody_serves_fails_while_iterated():
    service, _ = make_service()
    stream = service.stream(llm_request(model="m"))
    with pytest.raises(LlmError, match="'m'") as caught:
        await anext(stream)
    assert caught.value.code == "NO_ADAPTER"


async def test_a_duplicate_registers_nothing_of_its_list():
    service, _ = make_service()
    service.register_adapter(["m"], NamedAdapter("first"))
    for models in (["n", "m"], ["n", "n"]):
        with pytest.raises(LlmError) as caught:
            service.register_adapter(models, NamedAdapter("second"))
        assert caught.value.code == "DUPLICATE_ADAPTER"
    with pytest.raises(LlmError, match="no provider serves"):
        await answer(service, "n")


async def test_a_remover_frees_the_models_once_and_never_those_of_a_successor():
    service, _ = make_service()
    remove = service.register_adapter(["m"], NamedAdapter("first"))
    remove()
    service.register_adapter(["m"], NamedAdapter("second"))
    remove()
    assert (await answer(service))[0]["text"] == "second"


async def test_the_adapter_is_retried_inside_the_layers():
    service, hooks = make_service()
    calls = []

    def layer(request, call_next):
        calls.append(request.model)
        return call_next(request)

    hooks.wrap("llm/stream", layer)
    service.register_adapter(["m"], NamedAdapter("ok", failures=2))
    assert (await answer(service))[0]["text"] == "ok"
    assert calls == ["m"]


async def test_a_layer_may_answer_itself_also_for_a_model_that_nobody_serves():
    service, hooks = make_service()

    async def recorded(_request, _call_next):
        yield FINISH

    hooks.wrap("llm/stream", recorded)
    assert await answer(service, "unknown") == [FINISH]


async def test_a_layer_of_one_session_hears_only_that_session():
    service, hooks = make_service()

    async def recorded(_request, _call_next):
        yield FINISH

    hooks.wrap("llm/stream", recorded, agent="other")
    service.register_adapter(["m"], NamedAdapter("ok"))
    assert (await answer(service))[0]["text"] == "ok"
    assert await answer(service, session_id="other") == [FINISH]


async def test_closing_closes_each_adapter_once_also_when_one_fails():
    service, _ = make_service()
    adapters = [NamedAdapter("a"), NamedAdapter("b", close_error=OSError("broken")), NamedAdapter("c")]
    service.register_adapter(["a1", "a2"], adapters[0])
    service.register_adapter(["b"], adapters[1])
    service.register_adapter(["c"], adapters[2])
    with pytest.raises(OSError, match="broken"):
        await service.aclose()
    assert [adapter.closes for adapter in adapters] == [1, 1, 1]
