"""The configuration options on the wire."""

from acp_bridge.catalogue import DEEPSEEK_MODELS, Catalogue, Choice, ModelRow, Offer, Price, levels_of
from acp_bridge.permission.modes import MODES
from acp_bridge.schema import ClientCapabilities
from acp_bridge.translate.v1.options import config_options
from acp_bridge.translate.v1.updates import UpdateRenderer
from agent_loop.session.events import make_event

PAID = ModelRow("mine", "paid", "Paid one", window=100, price=Price(1.0, 1.0, 1.0, "USD"))
LEVELLED = ModelRow("mine", "own", "own", *levels_of(("low",), None, switch=False))
OFFER = Offer(MODES, Catalogue((*DEEPSEEK_MODELS, PAID, LEVELLED)), Choice("ask", DEEPSEEK_MODELS[0].value))


def renderer(*, live=True, offer=OFFER):
    capabilities = ClientCapabilities()
    return UpdateRenderer(lambda _n: None, capabilities, cwd="/p", window=lambda: 100, live=live, offer=offer)


def current(updates):
    (update,) = [each for each in updates if each["sessionUpdate"] == "config_option_update"]
    return {option["id"]: option["currentValue"] for option in update["configOptions"]}


def change(config_id, value):
    return make_event("config/change", 0, 0, {"configId": config_id, "value": value})


def test_models_of_several_providers_are_grouped_and_those_of_one_are_not():
    _mode, model, _thinking = config_options(OFFER, OFFER.default)
    assert [(group["group"], group["name"]) for group in model["options"]] == [
        ("deepseek", "DeepSeek"),
        ("mine", "mine"),
    ]
    assert model["options"][1]["options"][0] == {"value": "mine/paid", "name": "Paid one"}
    alone = OFFER._replace(catalogue=Catalogue(DEEPSEEK_MODELS))
    assert [row["name"] for row in config_options(alone, alone.default)[1]["options"]] == [
        "deepseek-v4-flash",
        "deepseek-v4-pro",
    ]


def test_thinking_is_an_option_only_where_the_model_has_levels():
    assert [option["id"] for option in config_options(OFFER, Choice("ask", "mine/paid"))] == ["mode", "model"]
    thinking = config_options(OFFER, Choice("ask", "mine/own"))[2]
    assert (thinking["category"], thinking["currentValue"]) == ("thought_level", "default")
    assert [row["name"] for row in thinking["options"]] == ["Default", "Low"]


def test_every_change_tells_the_complete_list():
    shown = renderer()
    assert current(shown.render(change("model", "mine/own"))) == {
        "mode": "ask",
        "model": "mine/own",
        "reasoning_effort": "default",
    }
    assert current(shown.render(change("reasoning_effort", "low")))["reasoning_effort"] == "low"
    both = shown.render(make_event("mode/change", 1, 0, {"modeId": "full"}))
    assert [update["sessionUpdate"] for update in both] == ["current_mode_update", "config_option_update"]
    assert current(both)["mode"] == "full"


def test_what_is_not_offered_any_more_is_shown_as_the_default_and_never_as_a_mode():
    shown = renderer(live=False)
    assert current(shown.render(change("model", "gone/x")))["model"] == OFFER.default.model
    assert shown.render(make_event("mode/change", 1, 0, {"modeId": "of another version"})) == []


def test_where_nothing_is_offered_a_mode_is_told_alone():
    shown = renderer(offer=None)
    assert [update["sessionUpdate"] for update in shown.render(make_event("mode/change", 1, 0, {"modeId": "x"}))] == [
        "current_mode_update"
    ]
    assert shown.render(change("model", "x")) == []


def called(model, *, provider="mine"):
    header = {"turn": 1, "step": 1, "model": model, "provider": provider, "fingerprint": "f"}
    usage = {"inputTokens": 1_000_000, "outputTokens": 1_000_000}
    message = {"turn": 1, "step": 1, "content": [], "usage": usage}
    return [make_event("request/header", 0, 0, header), make_event("assistant/message", 1, 0, message)]


def test_a_cost_grows_with_each_call_and_is_the_same_on_a_load():
    shown, loaded = renderer(), renderer(live=False)
    costs = []
    for event in called("paid") * 2:
        costs += [update.get("cost") for update in shown.render(event)]
        assert loaded.render(event) == []
    assert costs == [{"amount": 2.0, "currency": "USD"}, {"amount": 4.0, "currency": "USD"}]
    assert loaded.usage()[0]["cost"] == costs[-1]


def test_a_call_without_a_known_price_takes_the_cost_away():
    shown = renderer()
    events = [*called("paid"), *called("deepseek-v4-pro", provider="deepseek")]
    updates = [update for event in events for update in shown.render(event)]
    assert ["cost" in update for update in updates] == [True, False]


def test_what_goes_on_from_a_log_counts_what_was_spent_before():
    shown = renderer()
    shown.go_on(Choice("full", "mine/paid"), {("mine", "paid"): {"inputTokens": 3_000_000, "outputTokens": 0}})
    updates = [update for event in called("paid") for update in shown.render(event)]
    assert updates[0]["cost"]["amount"] == 5.0
    assert current(shown.render(change("colour", "red"))) == {"mode": "full", "model": "mine/paid"}
