"""Events of a log to what a reader sees of it, one entry after the other.

May not know: terminals, files, formats. Invariant: pure and streaming — it holds one message and the open calls,
whatever the length of the log; every text that the log shows an editor is in exactly one entry, in order. Cards are
those of the editor (`translate.v1.cards`): nothing about a tool is decided here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, assert_never, cast

from acp_bridge.cli.entries import (
    Changed,
    Diff,
    Entry,
    Noticed,
    Planned,
    Said,
    Speaker,
    ToolRun,
    TurnEnded,
    TurnStarted,
)
from acp_bridge.translate.v1.cards import FindTool, OpenCard, Update, closed, opened
from acp_bridge.translate.v1.compactions import PURPOSE
from acp_bridge.translate.v1.stops import CANCEL_REASONS
from agent_loop.session.events import NESTED_TYPES, KnownEvent, SessionEvent
from agent_loop.vocabulary import Block, JsonObject, TurnEndReason

MESSAGE_LIMIT: Final = 256 * 1024
"""Characters of one `Said`; a longer message goes on in another, which is `continued`."""

_SPEAKERS: Final[dict[str, Speaker]] = {"text-delta": "agent", "reasoning-delta": "thought"}

_ENDS: Final = {
    "max-tokens": "the answer was cut off: it reached the model's output limit",
    "max-steps": "the turn was stopped: it reached the limit of model calls",
    "refusal": "the model refused: the conversation goes on without this turn",
    "interrupted": "the agent was interrupted here, and the turn was closed when the session was opened again",
    "disposed": "the session was closed while this turn ran",
}
_OUTCOMES: Final = (
    ("timedOut", "timed out"),
    ("aborted", "aborted"),
    ("outputLimit", "stopped at the output limit"),
    ("background", "left processes running"),
    ("survivors", "left processes that could not be ended"),
)


@dataclass(frozen=True, slots=True)
class _Call:
    card: OpenCard
    shown: Update


# the call of a result that stands alone
_LOST: Final = _Call(OpenCard("tool", {}), {"title": "tool", "kind": "other", "_meta": {}})


class Transcript:
    """Feed every event in order; take the entries that are complete; `finish` at the end."""

    def __init__(self, find_tool: FindTool, *, cwd: str | None) -> None:
        self._find = find_tool
        self._cwd = cwd
        self._calls: dict[str, _Call] = {}
        self._texts: list[str] = []  # of the message that still grows
        self._size = 0
        self._speaker: Speaker = "agent"
        self._continued = False
        self._waiting: list[Entry] = []  # what happened while it grew
        self._summarising: tuple[int, int] | None = None  # the call whose answer is a summary, which is shown as such

    def feed(self, event: SessionEvent) -> list[Entry]:
        """The entries that `event` completes."""
        if not isinstance(event, KnownEvent):
            return []
        if event.type == "assistant/chunk":
            hidden = self._summarising == (event.data["turn"], event.data["step"])
            return [] if hidden else self._chunk(event.data["chunk"])
        entries = self._entries(event)
        if event.type in NESTED_TYPES:
            return [*self._settle(), *entries]
        if self._texts:
            self._waiting += entries
            return []
        return entries

    def finish(self) -> list[Entry]:
        """What the log breaks off in."""
        return [*self._settle(), *self._unfinished()]

    def growing(self) -> list[Entry]:
        """What is not complete yet, as far as it has come; it stays what it is."""
        said = [Said(self._speaker, "".join(self._texts), continued=self._continued)] if self._texts else []
        return [*said, *(replace(self._run(call.shown, None), status="running") for call in self._calls.values())]

    def _chunk(self, chunk: JsonObject) -> list[Entry]:
        if chunk["type"] not in _SPEAKERS or not chunk["text"]:
            return []
        speaker = _SPEAKERS[chunk["type"]]
        ready = self._settle() if speaker != self._speaker else []
        self._speaker = speaker
        self._texts.append(chunk["text"])
        self._size += len(chunk["text"])
        if self._size >= MESSAGE_LIMIT:
            ready += self._settle()
            self._continued = True
        return ready

    def _settle(self) -> list[Entry]:
        entries: list[Entry] = []
        if self._texts:
            entries.append(Said(self._speaker, "".join(self._texts), continued=self._continued))
        entries += self._waiting
        self._texts, self._waiting = [], []
        self._size, self._continued = 0, False
        return entries

    def _entries(self, event: KnownEvent) -> list[Entry]:  # noqa: C901, PLR0911, PLR0912 - one arm per event kind
        data = event.data
        match event.type:
            case "turn/start":
                return [TurnStarted(data["turn"], event.time)]
            case "turn/end":
                return [*self._unfinished(), *_ended(data["reason"])]
            case "user/message" | "steering/message":
                return [_said("user", data)]
            case "context/message":
                return [_said("context", data)]
            case "tool/call":
                return self._call(data)
            case "tool/result":
                return [self._result(data)]
            case "command/run":
                return [Said("user", data["line"])]
            case "command/done":
                return [Said("agent", data["text"])]
            case "session/title":
                # the first one is the prompt that follows it, and stands above the transcript
                return [] if data["by"] == "prompt" else [Changed("title", data["title"])]
            case "mode/change":
                return [Changed("mode", data["modeId"])]
            case "config/change":
                return [Changed(data["configId"], str(data.get("value")))]
            case "session/notice":
                return [Noticed(data["severity"], data["title"], data.get("description"))]
            case "plan/update":
                return [Planned(tuple(_step(entry) for entry in data["entries"]))]
            case "request/header":
                if data.get("purpose") == PURPOSE:
                    self._summarising = (data["turn"], data["step"])
                return []
            case "history/compacted":
                return [Noticed("info", "what stands above was summarised for the model", data["summary"])]
            case (
                "step/start"
                | "step/end"
                | "assistant/chunk"
                | "assistant/message"
                | "permission/request"
                | "permission/decision"
                | "llm/retry"
                | "loop/change"
            ):
                return []
            case _:
                assert_never(event.type)

    def _call(self, data: JsonObject) -> list[Entry]:
        card, shown = opened(
            self._find,
            data["callId"],
            data["name"],
            data["arguments"],
            cwd=self._cwd,
            terminals=True,
            status="in_progress",
        )
        before = self._calls.pop(data["callId"], None)
        self._calls[data["callId"]] = _Call(card, shown)
        return [self._run(before.shown, None)] if before else []

    def _result(self, data: JsonObject) -> ToolRun:
        call = self._calls.pop(data["callId"], None) or _LOST
        end = closed(
            self._find,
            data["callId"],
            call.card,
            content=data["content"],
            is_error=data["isError"],
            meta=data.get("meta"),
        )
        return self._run(call.shown, end)

    def _unfinished(self) -> list[Entry]:
        calls, self._calls = self._calls, {}
        return [self._run(call.shown, None) for call in calls.values()]

    def _run(self, shown: Update, end: Update | None) -> ToolRun:
        """One entry from the two updates of a card."""
        meta: JsonObject = shown["_meta"]
        terminal: JsonObject | None = meta.get("terminal_info")
        directory: str | None = terminal["cwd"] if terminal else None
        began, ended = shown.get("content", []), (end or {}).get("content", [])
        left: JsonObject = (end or {}).get("_meta", {})
        output: str = left.get("terminal_output", {}).get("data", "")
        return ToolRun(
            title=shown["title"],
            kind=shown["kind"],
            status=end["status"] if end else "unfinished",
            command=terminal is not None,
            directory=None if directory == self._cwd else directory,
            described=tuple(_texts(began)),
            output=output or None,
            texts=tuple(_texts(ended)),
            diffs=tuple(_diffs(ended or began)),
            ended=_outcome(end) if end else None,
        )


def _texts(content: list[JsonObject]) -> Iterator[str]:
    return (item["content"]["text"] for item in content if item["type"] == "content")


def _diffs(content: list[JsonObject]) -> Iterator[Diff]:
    return (Diff(item["path"], item["oldText"], item["newText"]) for item in content if item["type"] == "diff")


def _outcome(end: Update) -> str | None:
    """`exit 0`, `SIGTERM, timed out`; None when nothing ran, or what ran has no such end."""
    exit_: JsonObject = end["_meta"].get("terminal_exit") or {}
    facts: JsonObject = end.get("rawOutput", {})
    words = [exit_["signal"]] if exit_.get("signal") else []
    if exit_.get("exit_code") is not None:
        words.append(f"exit {exit_['exit_code']}")
    words += [text for key, text in _OUTCOMES if facts.get(key)]
    words += [f"full output: {path}" for path in facts.get("spillPaths", [])]
    return ", ".join(words) or None


def _said(speaker: Speaker, data: JsonObject) -> Said:
    source: JsonObject = data["source"]
    kind = source.get("kind")
    named = None if kind == "user" else str(source.get("plugin") or source.get("agentId") or kind)
    return Said(speaker, "\n".join(map(_readable, data["content"])), source=named)


def _readable(block: Block) -> str:
    for field in ("text", "uri"):
        if isinstance(block.get(field), str):
            return block[field]
    return f"[{block['type']}]"


def _step(entry: Any) -> tuple[str, str]:
    step = cast("JsonObject", entry) if isinstance(entry, dict) else {"content": entry}
    return str(step.get("status", "pending")), str(step.get("content", ""))


def _ended(reason: TurnEndReason) -> list[Entry]:
    kind = str(reason.get("kind"))
    if kind == "completed":
        return []
    if kind == "error":
        return [TurnEnded(f"the turn failed: {reason.get('message', 'unknown error')}", failed=True)]
    if kind == "aborted":
        why = str(reason.get("reason", ""))
        return [TurnEnded("cancelled" if why in CANCEL_REASONS else f"aborted: {why}", failed=False)]
    return [TurnEnded(_ENDS.get(kind, f"the turn ended: {kind}"), failed=False)]
