"""How the editor's bytes and answers are spread over time: what a right agent must not notice (issue: chunk fuzz).

May not know: frames, processes. Invariant: the pieces of a frame are its bytes in their order, none is empty, and one
seed always makes the same sequence.
"""

import random
from collections.abc import Iterator

_LONGEST_PAUSE = 0.03
_PIECE_SIZES = (1, 2, 3, 7, 64, 1 << 16)


class Pacing:
    """Steady: every frame in one write, every answer at once. `splits_model`: a scripted model sends single bytes."""

    splits_model = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What is written at a time."""
        yield data

    def pause(self) -> float:
        """Seconds before an answer to the agent is sent."""
        return 0.0


class RandomPacing(Pacing):
    """Frames in pieces of random sizes, answers after random pauses: another order of events, the same conversation."""

    splits_model = True

    def __init__(self, seed: int) -> None:
        self._writes = random.Random(f"writes {seed}")  # noqa: S311 - a schedule, no secret
        self._pauses = random.Random(f"pauses {seed}")  # noqa: S311 - a schedule, no secret

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Cuts `data` anywhere, also inside a character; single bytes are as likely as all of it."""
        size = self._writes.choice(_PIECE_SIZES)
        yield from (data[at : at + size] for at in range(0, len(data), size))

    def pause(self) -> float:
        """Up to 30 ms."""
        return self._pauses.random() * _LONGEST_PAUSE


STEADY = Pacing()
