"""A policy that asks, and a user whom a test plays: the double of `PermissionPolicy`."""

import anyio

from agent_loop.abort import AbortSignal
from agent_loop.tools.seam import Allow, Ask, Decision, PermissionPolicy, Tool, ToolCall, Verdict


class ScriptedPolicy(PermissionPolicy):
    """Asks about every tool in `asks_about` (None: about all). `answers` are given in order; when none is left it waits
    for `answer`, or for ever. `signals` are those of the asks so far; `listens` False plays a policy that hangs.
    """

    def __init__(
        self,
        *answers: Decision | Exception,
        asks_about: set[str] | None = None,
        listens: bool = True,
    ) -> None:
        self._answers = list(answers)
        self._asks_about = asks_about
        self._listens = listens
        self._late: Decision | None = None
        self._answered = anyio.Event()
        self.asked = anyio.Event()
        self.evaluated: list[str] = []
        self.signals: list[AbortSignal] = []

    def evaluate(self, session_id: str, tool: Tool, call: ToolCall, cwd: str, roots: tuple[str, ...]) -> Verdict:
        self.evaluated.append(call.id)
        if self._asks_about is not None and tool.name not in self._asks_about:
            return Allow()
        return Ask(f"digest of {call.raw} in {cwd}")

    async def ask(self, session_id: str, tool: Tool, call: ToolCall, ask: Ask, signal: AbortSignal) -> Decision:
        self.signals.append(signal)
        self.asked.set()
        if self._answers:
            answer = self._answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if self._listens:
            signal.on_abort(self._answered.set)
        await self._answered.wait()
        return self._late or Decision("cancelled", "abort")

    def answer(self, decision: Decision) -> None:
        """The user's late click."""
        self._late = decision
        self._answered.set()
