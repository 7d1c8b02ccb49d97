"""What a scripted model says to make the agent run a command."""

import json
from itertools import count
from typing import Any

_numbers = count(1)


def bash_call(command: str, *, call_id: str | None = None, **arguments: Any) -> dict[str, Any]:
    """An answer of the model server: one bash call, with an id of its own."""
    text = json.dumps({"command": command, "description": "Runs the command", **arguments})
    return {"tool_calls": [{"id": call_id or f"call-{next(_numbers)}", "name": "bash", "arguments": [text]}]}


def done(text: str = "done") -> dict[str, Any]:
    """The answer that ends a turn."""
    return {"text": [text]}
