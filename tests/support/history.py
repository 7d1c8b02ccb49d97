"""What a session log means to the model, derived by the product."""

from acp_bridge.testing.json_values import JsonObject
from agent_loop.session.derive import derive_messages
from agent_loop.session.events import make_event
from agent_loop.vocabulary import Message


def history(records: list[JsonObject]) -> list[Message]:
    """The messages of a log (header and events, as parsed)."""
    return derive_messages(make_event(row["type"], row["seq"], row["time"], row["data"]) for row in records[1:])
