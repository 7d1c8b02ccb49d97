"""Server-sent events (HTML standard, "Server-sent events").

May not know: what is sent. Invariant: pure; one frame is one event, whatever its data holds.
"""

import json
from typing import Any, Final

KEEP_ALIVE: Final = b":\n\n"
"""A comment: shows a connection that is dead to be so."""


def frame(event: str, data: Any) -> bytes:
    """One event; `data` as JSON, in which no line ends."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()
