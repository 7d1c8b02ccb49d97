"""The files that a session can be exported to, piece by piece.

May not know: streams, secrets. Invariant: pure and streaming; the log document is a log that can be imported.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import assert_never

from acp_bridge.cli import html, markdown, times
from acp_bridge.cli.about import about_session
from acp_bridge.cli.arguments import Format
from acp_bridge.cli.entries import Entry, TurnStarted
from acp_bridge.cli.transcript import Transcript
from acp_bridge.translate.v1.cards import FindTool
from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import LOG_VERSION, SessionEvent, SessionHeader
from agent_loop.session.store import SessionSummary


class Document(ABC):
    """`begin` once, `feed` every event in order, `finish` once; what they return is UTF-8."""

    @abstractmethod
    def begin(self, header: SessionHeader, summary: SessionSummary | None) -> bytes:
        """What stands above the events."""

    @abstractmethod
    def feed(self, event: SessionEvent) -> bytes:
        """What `event` completes."""

    @abstractmethod
    def finish(self) -> bytes:
        """What is left."""


def document(form: Format, find_tool: FindTool) -> Document:
    """The document of a format."""
    match form:
        case "jsonl":
            return LogDocument()
        case "md" | "html":
            return Page(find_tool, form=form)
        case _:
            assert_never(form)


class LogDocument(Document):
    """The log itself, in the present format."""

    def begin(self, header: SessionHeader, summary: SessionSummary | None) -> bytes:  # noqa: ARG002 - a log tells it itself
        return encode_header(replace(header, version=LOG_VERSION))

    def feed(self, event: SessionEvent) -> bytes:
        return encode_event(event)

    def finish(self) -> bytes:
        return b""


class Page(Document):
    """A transcript; times are UTC, so that it reads the same everywhere. `title`: of a session without a summary."""

    def __init__(self, find_tool: FindTool, *, form: Format, title: str | None = None) -> None:
        self._title = title
        self._find = find_tool
        self._html = form == "html"
        self._transcript = Transcript(find_tool, cwd=None)

    def begin(self, header: SessionHeader, summary: SessionSummary | None) -> bytes:
        self._transcript = Transcript(self._find, cwd=header.cwd)
        about = about_session(header, summary, times.iso, title=self._title)
        return (html.beginning(about) if self._html else markdown.beginning(about)).encode()

    def feed(self, event: SessionEvent) -> bytes:
        return self._written(self._transcript.feed(event))

    def finish(self) -> bytes:
        return self._written(self._transcript.finish()) + (html.ending().encode() if self._html else b"")

    def _written(self, entries: list[Entry]) -> bytes:
        write = html.entry_html if self._html else markdown.entry_text
        return "".join(
            write(entry, moment=times.iso(entry.time) if isinstance(entry, TurnStarted) else "") for entry in entries
        ).encode()
