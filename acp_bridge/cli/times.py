"""Moments for people and for programs; all of them come as epoch milliseconds.

May not know: what happened then. Invariant: pure and total — a log may hold any integer.
"""

from datetime import UTC, datetime, tzinfo
from typing import Final

_LATEST: Final = 253_402_300_799_999  # the end of the year 9999, which is where `datetime` ends
_STEPS: Final = ((60, "min"), (3600, "h"), (86_400, "d"), (7 * 86_400, "weeks"), (365 * 86_400, "years"))


def iso(ms: int) -> str:
    """ISO 8601 in UTC with milliseconds and `Z`."""
    return _moment(ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local(ms: int, zone: tzinfo | None) -> str:
    """`2026-11-30 14:05`; zone None = where this machine is."""
    return _moment(ms).astimezone(zone).strftime("%Y-%m-%d %H:%M")


def ago(ms: int, now_ms: int) -> str:
    """`now`, `5 min ago`, `3 h ago`, `2 d ago`, `4 weeks ago`, `2 years ago`."""
    seconds = (now_ms - ms) // 1000
    passed = [(size, unit) for size, unit in _STEPS if seconds >= size]
    if not passed:
        return "now"
    size, unit = passed[-1]
    count = seconds // size
    return f"{count} {unit.removesuffix('s') if count == 1 else unit} ago"


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(min(max(ms, 0), _LATEST) / 1000, tz=UTC)
