"""A real agent of the real registry, whose delivery edge a test plays: it notes what it is sent and does nothing."""

from typing import Any, Literal

from agent_loop.agent import Agent
from agent_loop.inbox import InboxMessage, Target

Sent = tuple[InboxMessage, Target, bool]


class SpyAgent(Agent):
    """`sent` are the arguments of every `send`, `others` the calls of the wrappers; `refuses` is raised by `send`."""

    sent: list[Sent]
    others: list[str]
    stands: Literal["idle", "running"]
    refuses: Exception | None

    @property
    def status(self) -> Any:
        return self.stands

    def send(self, message: InboxMessage, target: Target, *, wakeup: bool) -> None:
        if self.refuses:
            raise self.refuses
        self.sent.append((message, target, wakeup))

    def followup(self, message: InboxMessage) -> None:
        self.others.append("followup")

    def steer(self, message: InboxMessage) -> None:
        self.others.append("steer")

    def inject(self, message: InboxMessage) -> None:
        self.others.append("inject")

    async def when_idle(self) -> None:
        """It never runs."""

    def texts(self) -> list[str]:
        """What it was sent."""
        return [message.content[0]["text"] for message, _, _ in self.sent]


def spied(agent: Agent) -> SpyAgent:
    """The same object, watched from now on."""
    agent.__class__ = SpyAgent
    assert isinstance(agent, SpyAgent)
    agent.sent, agent.others, agent.stands, agent.refuses = [], [], "idle", None
    return agent
