"""What a session can choose, what it has, and what that costs."""

import pytest

from acp_bridge.catalogue import (
    DEEPSEEK_MODELS,
    Catalogue,
    Choice,
    ModelRow,
    Offer,
    Price,
    levels_of,
    plain_catalogue,
)

FLASH, PRO = DEEPSEEK_MODELS
PLAIN = ModelRow("mine", "llama", "Llama")
PRICED = ModelRow("mine", "paid", "Paid", price=Price(2.0, 0.5, 10.0, "EUR"))
CATALOGUE = Catalogue((FLASH, PRO, PLAIN, PRICED))
MODES = ({"id": "ask", "name": "Ask", "description": "a"}, {"id": "full", "name": "Full", "description": "f"})
OFFER = Offer(MODES, CATALOGUE, Choice("ask", FLASH.value))


@pytest.mark.parametrize(
    ("efforts", "default", "switch", "levels", "level"),
    [
        ((), None, False, (), None),
        ((), None, True, ("off", "on"), "on"),
        (("low", "high"), "low", False, ("low", "high"), "low"),
        (("low", "high"), None, False, ("default", "low", "high"), "default"),
        (("low",), "odd", True, ("default", "off", "low"), "default"),
        (("high", "max"), "high", True, ("off", "high", "max"), "high"),
    ],
)
def test_the_levels_of_a_model_begin_with_what_it_does_by_itself_when_that_is_not_known(
    efforts, default, switch, levels, level
):
    assert levels_of(efforts, default, switch=switch) == (levels, level)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("mine/llama", PLAIN),
        ("llama", PLAIN),
        ("Llama", PLAIN),
        ("mine", PLAIN),
        ("deepseek", FLASH),
        ("deepseek-v4-pro", PRO),
        ("nobody", None),
    ],
)
def test_a_person_may_name_a_model_in_short(text, row):
    assert CATALOGUE.named(text) == row


def test_what_was_never_chosen_or_is_not_offered_reads_as_the_default():
    assert OFFER.restored(None, {}) == OFFER.default
    assert OFFER.restored("gone", {"model": "gone/x", "colour": "red"}) == OFFER.default
    assert OFFER.restored(None, {"model": 5, "reasoning_effort": None}) == OFFER.default
    chosen = OFFER.restored("full", {"model": PRO.value, "reasoning_effort": "max"})
    assert chosen == Choice("full", PRO.value, "max")


def test_a_level_is_kept_for_the_next_model_that_knows_it():
    chosen = OFFER.restored(None, {"reasoning_effort": "max", "model": PLAIN.value})
    assert (OFFER.level(chosen), OFFER.effort(chosen)) == (None, None)
    back = OFFER.after(chosen, "model", PRO.value)
    assert (OFFER.level(back), OFFER.effort(back)) == ("max", "max")


def test_nothing_is_said_to_a_model_that_is_to_think_by_itself():
    own = ModelRow("mine", "own", "own", *levels_of(("low",), None, switch=False))
    offer = Offer(MODES, Catalogue((own,)), Choice("ask", own.value))
    assert offer.level(offer.default) == "default"
    assert offer.effort(offer.default._replace(level="default")) is None
    assert offer.effort(offer.default._replace(level="low")) == "low"


def test_a_choice_of_a_model_that_is_gone_means_the_first():
    assert OFFER.row(Choice("ask", "gone/x")) == FLASH


def test_the_values_of_an_option_are_those_that_can_be_chosen_now():
    assert OFFER.values("mode", OFFER.default) == ("ask", "full")
    assert OFFER.values("model", OFFER.default)[2:] == ("mine/llama", "mine/paid")
    assert OFFER.values("reasoning_effort", OFFER.default) == ("off", "high", "max")
    assert OFFER.values("colour", OFFER.default) == ()


def test_a_cost_counts_cached_tokens_at_their_own_price():
    usage = {"inputTokens": 100, "outputTokens": 10, "cacheReadTokens": 1000, "cacheWriteTokens": 50}
    assert CATALOGUE.cost({("mine", "paid"): usage}) == ((150 * 2.0 + 1000 * 0.5 + 10 * 10.0) / 1_000_000, "EUR")


@pytest.mark.parametrize("other", [FLASH, PLAIN, PRICED._replace(id="dollars", price=Price(1, 1, 1, "USD"))])
def test_a_cost_is_told_only_when_every_price_is_known_in_one_currency(other):
    usage = {"inputTokens": 1, "outputTokens": 1}
    catalogue = Catalogue((PRICED, other))
    assert catalogue.cost({("mine", "paid"): usage, (other.provider, other.id): usage}) is None
    assert catalogue.cost({}) is None


def test_an_unlisted_model_is_offered_beside_the_others():
    assert [row.id for row in plain_catalogue("deepseek-v5").rows] == [
        "deepseek-v4-flash",
        "deepseek-v4-pro",
        "deepseek-v5",
    ]
    assert plain_catalogue("deepseek-v4-pro").rows == plain_catalogue(None).rows == DEEPSEEK_MODELS
