"""Sessions name themselves: the first prompt with text gives the title (contract session-log.md §3, `session/title`).

May not know: how a title is made or shown. Invariant: a log that has a title keeps it, whoever gave it.
"""

from agent_loop.agent import Agent
from agent_loop.hooks import Hooks, Remover
from agent_loop.inbox import InboxMessage
from agent_loop.session.title import title_of


def install_titles(hooks: Hooks) -> Remover:
    """From now on every session without a title gets that of the first message that a person sends."""

    def claimed(agent: Agent, message: InboxMessage, _turn: int) -> None:
        if agent.session.title is not None or message.source.get("kind") != "user":
            return
        title = title_of(message.content)
        if title is not None:
            agent.session.append("session/title", {"title": title, "by": "prompt"})

    return hooks.on("agent/inbox/claimed", claimed)
