"""What an endpoint said about a key.

May not know: HTTP, providers. Invariant: plain data; the sentence holds no key.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class KeyVerdict:
    """`unknown`: neither accepted nor rejected, because nobody answered or the answer tells nothing about the key."""

    kind: Literal["accepted", "rejected", "unknown"]
    sentence: str
