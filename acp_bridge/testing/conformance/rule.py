"""One rule of the manifest, as data.

May not know: how it is checked. Invariant: an id never changes its meaning; the sentence is complete without the
document it came from.
"""

from dataclasses import dataclass
from typing import Literal

Strength = Literal["MUST", "SHOULD", "CLIENT"]
"""MUST: the schema or a MUST of the protocol's text. SHOULD: a SHOULD of it. CLIENT: real clients break without it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`source` names a page of the protocol, `schema:Type`, or a client.

    `gate` is a dotted name below `agentCapabilities` (`loadSession`, `sessionCapabilities.list`); an agent that does
    not advertise it is not held to the rule. Empty: every agent is.
    """

    id: str
    strength: Strength
    source: str
    sentence: str
    gate: str = ""
