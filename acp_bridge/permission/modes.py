"""The modes of a session (acp.md §4).

May not know: policies, anything that takes time to load: the light path answers `session/new` with them.
"""

from typing import Any, Final

READ_ONLY: Final = "read-only"
ASK: Final = "ask"
AUTO_EDIT: Final = "auto-edit"
FULL: Final = "full"
MODES: Final = (
    {
        "id": READ_ONLY,
        "name": "Read only",
        "description": "Reads the workspace freely; asks before everything that has an effect, whatever was allowed.",
    },
    {"id": ASK, "name": "Ask", "description": "Reads freely; asks before each change and each command."},
    {
        "id": AUTO_EDIT,
        "name": "Auto edit",
        "description": "Changes files of the workspace without asking; asks before each command.",
    },
    {"id": FULL, "name": "Full access", "description": "Asks nothing; what you have forbidden stays forbidden."},
)
MODE_IDS: Final = tuple(mode["id"] for mode in MODES)


def mode_state(current: str) -> dict[str, Any]:
    """`SessionModeState`."""
    return {"currentModeId": current, "availableModes": list(MODES)}
