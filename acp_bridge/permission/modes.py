"""The modes of a session (acp.md §4).

May not know: policies, anything that takes time to load: the light path answers `session/new` with them.
"""

from typing import Any, Final

ASK: Final = "ask"
FULL: Final = "full"
MODES: Final = (
    {"id": ASK, "name": "Ask", "description": "Reads freely; asks before each command."},
    {"id": FULL, "name": "Full access", "description": "Runs commands without asking."},
)
MODE_IDS: Final = tuple(mode["id"] for mode in MODES)


def mode_state(current: str) -> dict[str, Any]:
    """`SessionModeState`."""
    return {"currentModeId": current, "availableModes": list(MODES)}
