"""A structlog-shaped logger that keeps what it is told."""

from typing import Any


class RecordingLog:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def debug(self, event: str, **details: Any) -> None:
        self.lines.append(("debug", event, details))

    def warning(self, event: str, **details: Any) -> None:
        self.lines.append(("warning", event, details))

    def named(self, event: str) -> list[dict[str, Any]]:
        return [details for _level, name, details in self.lines if name == event]
