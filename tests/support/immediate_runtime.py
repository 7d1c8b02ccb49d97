"""A virtual clock that needs nobody to move it: each sleep moves it by itself and is remembered."""

import anyio.lowlevel

from agent_loop.runtime import VirtualRuntime


class ImmediateRuntime(VirtualRuntime):
    """`slept` holds the seconds of every sleep, in order; `next_jitter` is what `jitter` answers."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []
        self.next_jitter = 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(round(seconds * 1000))
        await anyio.lowlevel.checkpoint()

    def jitter(self) -> float:
        return self.next_jitter
