"""From the settings to endpoints and models."""

import pytest

from acp_bridge.catalogue import Price
from acp_bridge.composition.models import all_providers, offer_of, providers_of, register_adapters
from acp_bridge.config_file import Flags, RawConfig
from acp_bridge.settings import load_settings
from agent_loop.errors import LlmError
from agent_loop.hooks import Hooks
from agent_loop.llm.openai_compat.models import DEEPSEEK
from agent_loop.llm.service import LlmService
from agent_loop.runtime import VirtualRuntime
from tests.support.llm_request import llm_request

MINE = {
    "base_url": "http://mine/v1",
    "key_variable": "MINE_KEY",
    "models": [
        {
            "id": "llama",
            "name": "Llama",
            "context": 8000,
            "images": True,
            "efforts": ["low", "high"],
            "default_effort": "low",
            "price_input": 1.0,
            "price_output": 2.0,
            "currency": "EUR",
        },
        {"id": "deepseek-v4-flash", "merge_users": True},
    ],
}


def settings(table=None, *, flags=None, **environment):
    return load_settings(RawConfig("/c.toml", table or {}), flags or Flags(), environment)


def offered(table=None, *, environment=None, **rest):
    made = settings(table, **rest)
    return offer_of(made, providers_of(made, environment or {}))


def test_without_a_configuration_there_is_deepseek():
    offer = offered()
    assert [row.value for row in offer.catalogue.rows] == ["deepseek/deepseek-v4-flash", "deepseek/deepseek-v4-pro"]
    assert offer.default.model == "deepseek/deepseek-v4-flash"
    flash = offer.catalogue.rows[0]
    assert (flash.window, flash.reasoning, flash.levels, flash.level) == (
        1_000_000,
        "echo",
        ("off", "high", "max"),
        "high",
    )


def test_every_configured_provider_stands_beside_the_chosen_one():
    offer = offered({"model": "mine/llama", "providers": {"mine": MINE}, "thinking": "high"})
    assert [row.value for row in offer.catalogue.rows] == ["mine/llama", "mine/deepseek-v4-flash"]
    assert (offer.default.model, offer.default.level) == ("mine/llama", "high")
    llama = offer.catalogue.rows[0]
    assert (llama.name, llama.window, llama.images, llama.level) == ("Llama", 8000, True, "low")
    assert llama.price == Price(1.0, 1.0, 2.0, "EUR")
    assert offer.catalogue.rows[1].merge_users


@pytest.mark.parametrize(
    ("table", "environment"),
    [
        ({"model": "mine", "providers": {"mine": MINE}}, {"DEEPSEEK_API_KEY": "k"}),
        ({"model": "mine", "providers": {"mine": MINE, "deepseek": {"key": "k"}}}, {}),
        ({"providers": {"mine": MINE}}, {}),
    ],
)
def test_deepseek_is_offered_where_it_has_its_key_is_configured_or_is_chosen(table, environment):
    offer = offered(table, environment=environment)
    assert {row.provider for row in offer.catalogue.rows} == {"deepseek", "mine"}


def test_a_model_of_deepseek_in_the_configuration_keeps_what_is_known_of_it():
    entry = {"id": "deepseek-v4-flash", "price_input": 0.14, "price_cached": 0.0028, "price_output": 0.28}
    (flash,) = offered({"providers": {"deepseek": {"models": [entry]}}}).catalogue.rows
    assert (flash.window, flash.level, flash.price) == (1_000_000, "high", Price(0.14, 0.0028, 0.28, "USD"))
    (other,) = offered({"providers": {"deepseek": {"models": [{"id": "new", "price_input": 1.0}]}}}).catalogue.rows
    assert (other.window, other.levels, other.price) == (None, (), None)


def test_a_model_that_its_provider_does_not_list_is_taken_as_it_is():
    offer = offered(flags=Flags(model="deepseek/next"))
    assert offer.default.model == "deepseek/next"
    assert offer.catalogue.find("deepseek/next").window is None


def test_the_address_of_deepseek_may_be_another():
    made = settings(DEEPSEEK_BASE_URL="http://here")
    assert [profile.base_url for profile in all_providers(made)] == ["http://here"]
    both = all_providers(settings({"providers": {"mine": MINE}}))
    assert [(profile.name, profile.base_url) for profile in both] == [
        ("deepseek", DEEPSEEK.base_url),
        ("mine", "http://mine/v1"),
    ]


async def test_models_of_one_name_are_served_by_their_own_providers():
    made = settings({"providers": {"mine": MINE}})
    runtime = VirtualRuntime()
    llm = LlmService(Hooks(lambda _name, error: None), runtime)
    asked = []

    def credential(provider):
        async def find():
            asked.append(provider)
            raise LlmError("no key in this test", "NO_CREDENTIAL")

        return find

    adapters = register_adapters(providers_of(made, {}), llm=llm, runtime=runtime, credential=credential)
    assert set(adapters) == {"deepseek", "mine"}
    for provider in ("mine", "deepseek"):
        with pytest.raises(LlmError, match="no key in this test"):
            async for _chunk in llm.stream(llm_request(model="deepseek-v4-flash", provider=provider)):
                pass
    assert asked == ["mine", "deepseek"]
    with pytest.raises(LlmError, match="no provider serves"):
        async for _chunk in llm.stream(llm_request(model="llama", provider="deepseek")):
            pass
