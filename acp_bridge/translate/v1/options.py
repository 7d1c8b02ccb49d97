"""The configuration options of ACP v1 (acp.md §2): `mode`, `model`, `reasoning_effort`.

May not know: sessions, anything that takes time to load: the light path answers `session/new` with them. Invariant:
pure; the list is always complete, every current value is among those offered, and the order is the order of importance.
There is no boolean option, so none is ever sent to a client that does not know them.
"""

from typing import Any, Final

from acp_bridge.catalogue import BY_ITSELF, OFF, Choice, ModelRow, Offer

_PROVIDERS: Final = {"deepseek": "DeepSeek"}
_LEVELS: Final = {
    OFF: ("Off", "Answers without thinking first."),
    BY_ITSELF: ("Default", "As much as the model thinks by itself."),
    "max": ("Max", "Thinks as long as it takes."),
}


def config_options(offer: Offer, choice: Choice) -> list[dict[str, Any]]:
    """The complete list; `reasoning_effort` is there when the chosen model has levels to choose from."""
    modes = [{"value": mode["id"], "name": mode["name"], "description": mode["description"]} for mode in offer.modes]
    options = [
        _select("mode", "Mode", "What the agent may do without asking.", "mode", choice.mode, modes),
        _select("model", "Model", "Takes effect with the next prompt.", "model", choice.model, _models(offer)),
    ]
    if levels := offer.row(choice).levels:
        rows = [_level(level) for level in levels]
        what = "How much the model thinks before it answers."
        options.append(
            _select("reasoning_effort", "Thinking", what, "thought_level", str(offer.level(choice)), rows),
        )
    return options


def _select(
    config_id: str, name: str, what: str, category: str, current: str, values: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": config_id,
        "name": name,
        "description": what,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": values,
    }


def _models(offer: Offer) -> list[dict[str, Any]]:
    rows = offer.catalogue.rows
    providers = list(dict.fromkeys(row.provider for row in rows))
    if len(providers) == 1:
        return [_model(row) for row in rows]
    return [
        {
            "group": provider,
            "name": _PROVIDERS.get(provider, provider),
            "options": [_model(row) for row in rows if row.provider == provider],
        }
        for provider in providers
    ]


def _model(row: ModelRow) -> dict[str, Any]:
    return {"value": row.value, "name": row.name}


def _level(level: str) -> dict[str, Any]:
    if level not in _LEVELS:
        return {"value": level, "name": level[:1].upper() + level[1:]}
    name, what = _LEVELS[level]
    return {"value": level, "name": name, "description": what}
