"""The models that a session can choose from, and what was chosen: the neutral half of the configuration options.

May not know: how an option looks on the wire, where a model comes from, anything that takes time to load (the light
path answers with the plain case). Invariant: a choice that is not offered — of another version, another configuration —
reads as the default, and what the log says is never changed for it.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

OFF: Final = "off"
"""The thinking level of a model that can be told not to think."""
ON: Final = "on"
"""The other level of such a model when it takes no effort."""
BY_ITSELF: Final = "default"
"""The level of a model whose own effort is not known: nothing is sent."""


class Price(NamedTuple):
    """What a million tokens cost; `cached` are input tokens that the provider had in its cache."""

    input: float
    cached: float
    output: float
    currency: str


class ModelRow(NamedTuple):
    """One model. `window` in tokens; `level` is the thinking level that it takes by itself, one of `levels`.

    `reasoning` and `merge_users` as `Agent.use_model` takes them; None = not known.
    """

    provider: str
    id: str
    name: str
    levels: tuple[str, ...] = ()
    level: str | None = None
    window: int | None = None
    images: bool = False
    price: Price | None = None
    reasoning: Any = "none"
    merge_users: bool = False

    @property
    def value(self) -> str:
        """What the log and the client call it: the same for as long as its provider has its name."""
        return f"{self.provider}/{self.id}"


def levels_of(efforts: tuple[str, ...], default: str | None, *, switch: bool) -> tuple[tuple[str, ...], str | None]:
    """The thinking levels that a model offers, and the one that it takes by itself; none when nothing can be chosen."""
    levels = ((OFF,) if switch else ()) + (efforts or ((ON,) if switch else ()))
    if not levels:
        return (), None
    if default in levels:
        return levels, default
    if switch and not efforts:
        return levels, ON
    return (BY_ITSELF, *levels), BY_ITSELF


class Catalogue(NamedTuple):
    """Every model of every provider, in the order in which they are offered."""

    rows: tuple[ModelRow, ...]

    def find(self, value: object) -> ModelRow | None:
        """The model that the log calls `value`."""
        return next((row for row in self.rows if row.value == value), None)

    def named(self, text: str) -> ModelRow | None:
        """The model that a person means: `provider/model`, or a model, or a provider (its first model)."""
        names = ("value", "id", "name", "provider")
        return next((row for name in names for row in self.rows if getattr(row, name) == text), None)

    def price(self, provider: str, model: str) -> Price | None:
        """What that model costs, when it is known."""
        row = self.find(f"{provider}/{model}")
        return row and row.price

    def cost(self, spent: Mapping[tuple[str, str], Mapping[str, Any]]) -> tuple[float, str] | None:
        """Amount and currency of `spent` tokens; None unless every price is known, and all in one currency."""
        prices = {model: self.price(*model) for model in spent}
        known = {model: price for model, price in prices.items() if price is not None}
        currencies = {price.currency for price in known.values()}
        if len(known) < len(prices) or len(currencies) != 1:
            return None
        total = sum(
            (spent[model]["inputTokens"] + spent[model].get("cacheWriteTokens", 0)) * price.input
            + spent[model].get("cacheReadTokens", 0) * price.cached
            + spent[model]["outputTokens"] * price.output
            for model, price in known.items()
        )
        return round(total / 1_000_000, 6), currencies.pop()


class Choice(NamedTuple):
    """What a session has: a mode id, the value of a model, a thinking level (None: the model's own)."""

    mode: str
    model: str
    level: str | None = None


class Offer(NamedTuple):
    """What a session can choose: `modes` are `{id,name,description}`; `default` is what it has until it chooses."""

    modes: tuple[dict[str, str], ...]
    catalogue: Catalogue
    default: Choice

    def row(self, choice: Choice) -> ModelRow:
        """The model of a choice that this offer made."""
        return self.catalogue.find(choice.model) or self.catalogue.rows[0]

    def level(self, choice: Choice) -> str | None:
        """The thinking level in effect; None when the model has none to choose."""
        row = self.row(choice)
        return choice.level if choice.level in row.levels else row.level

    def effort(self, choice: Choice) -> str | None:
        """The level to ask the model for; None when nothing is to be said about it."""
        asked = choice.level if choice.level in self.row(choice).levels else None
        return None if asked == BY_ITSELF else asked

    def values(self, config_id: str, choice: Choice) -> tuple[str, ...]:
        """What an option can be set to; empty for an option that there is not."""
        match config_id:
            case "mode":
                return tuple(mode["id"] for mode in self.modes)
            case "model":
                return tuple(row.value for row in self.catalogue.rows)
            case "reasoning_effort":
                return self.row(choice).levels
            case _:
                return ()

    def after(self, choice: Choice, config_id: str, value: object) -> Choice:
        """The choice after a change; the same when that is not offered."""
        # a level is kept as it was chosen: the next model may know it where this one does not
        if config_id == "reasoning_effort" and isinstance(value, str):
            return choice._replace(level=value)
        if not isinstance(value, str) or value not in self.values(config_id, choice):
            return choice
        return choice._replace(mode=value) if config_id == "mode" else choice._replace(model=value)

    def restored(self, mode: str | None, changes: Mapping[str, object]) -> Choice:
        """The choice of a session whose log says so; what was never chosen, or is not offered now, is the default."""
        choice = self.default
        for config_id, value in ({"mode": mode} | dict(changes)).items():
            choice = self.after(choice, config_id, value)
        return choice


_LEVELS: Final = levels_of(("high", "max"), "high", switch=True)
DEEPSEEK_MODELS: Final = tuple(
    ModelRow("deepseek", model, model, *_LEVELS) for model in ("deepseek-v4-flash", "deepseek-v4-pro")
)
"""What the light path offers: as much of the built-in models as a client is told of them."""


def plain_catalogue(model: str | None) -> Catalogue:
    """DeepSeek's models, with `model` where it is none of them; for who has no configuration."""
    listed = {row.id for row in DEEPSEEK_MODELS}
    unlisted = () if model is None or model in listed else (DEEPSEEK_MODELS[0]._replace(id=model, name=model),)
    return Catalogue((*DEEPSEEK_MODELS, *unlisted))
