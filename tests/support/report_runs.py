"""Runs as a report gets them, made by hand."""

from typing import Any

from acp_bridge.testing.editor import Entry
from acp_bridge.testing.harness import Run


def client(at: float, **frame: Any) -> Entry:
    return Entry("client", {"jsonrpc": "2.0", **frame}, at)


def agent(at: float, **frame: Any) -> Entry:
    return Entry("agent", {"jsonrpc": "2.0", **frame}, at)


def said(text: Any, session: str = "s") -> dict[str, Any]:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return {"method": "session/update", "params": {"sessionId": session, "update": update}}


def run_of(*entries: Entry, transcript: list[dict[str, Any]] | None = None) -> Run:
    """A run of these frames; its transcript is the agent's part of them when none is given."""
    frames = [entry.frame for entry in entries if entry.sender == "agent"]
    return Run(
        entries=entries,
        raw=b"",
        transcript=frames if transcript is None else transcript,
        logs=[],
        report=[],
        failures=[],
        stderr="",
    )
