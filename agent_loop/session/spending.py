"""The tokens of a session, by the model that took them: what a cost is reckoned from.

May not know: prices, currencies. Invariant: a fold of logged usage alone, so it is the same live and after a load.
"""

from collections.abc import Mapping
from typing import cast

from agent_loop.vocabulary import JsonObject, Usage

Spent = Mapping[tuple[str, str], Usage]
"""Tokens by (provider, model)."""


def add_usage(spent: Spent, model: tuple[str, str], usage: Usage) -> Spent:
    """`spent` with one more call; what it was before is not changed."""
    before: JsonObject = dict(spent.get(model, {}))
    for key, count in usage.items():
        if type(count) is int:
            before[key] = before.get(key, 0) + count
    return {**spent, model: cast("Usage", before)}
