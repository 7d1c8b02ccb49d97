"""One tool call of the broken agent as the client sees it: the card, and the permission.

May not know: what the tools do. Standard library only. Invariant: a card is announced once, goes from pending to
in_progress to an end, and nothing has an effect that was not allowed.
"""

import uuid
from collections.abc import Callable
from typing import Any

from acp_bridge.testing.broken_agent_model import Call
from acp_bridge.testing.broken_agent_session import Session, Turn, shown_text
from acp_bridge.testing.broken_agent_wire import Cancel, table
from acp_bridge.testing.json_values import JsonObject

_OPTIONS = {
    "allow_once": "Allow once",
    "allow_always": "Allow {grant} for the session",
    "reject_once": "Reject",
    "reject_always": "Reject {grant} for the session",
}


class Card:
    """The card of `call`. `content` is what it shows before it runs; `grant` what an "always" is about."""

    def __init__(
        self, session: Session, turn: Turn, call: Call, *, title: str, kind: str, raw: JsonObject, grant: str = ""
    ) -> None:
        self.session = session
        self.turn = turn
        self.id = call.id if "model-call-ids" in session.faults else f"call-{uuid.uuid4()}"
        self.title = title
        self.kind = kind
        self.grant = grant
        self.terminal: str | None = None
        self.is_open = False
        self.is_closed = False
        self.late: Callable[[JsonObject], object] = lambda _frame: None
        self.content: list[JsonObject] = []
        self.locations: list[JsonObject] = []
        self._name = call.name
        self._raw: Any = str(raw) if "raw-strings" in session.faults else raw

    def open(self) -> None:
        """Announce it."""
        self.is_open = self.turn.has_shown = True
        faults = self.session.faults
        if "update-first" in faults:
            self.session.show(self._update(status="pending"))
        meta: JsonObject = {}
        if self.terminal is not None:
            meta = {"_meta": {"terminal_info": {"terminal_id": self.terminal, "cwd": self.session.cwd}}}
        card: JsonObject = {"sessionUpdate": "tool_call", "toolCallId": self.id, **self._fields(), **meta}
        for _ in range(2 if "announces-twice" in faults else 1):
            self.session.show(card)

    def is_allowed(self) -> bool:
        """Ask where the mode asks. Raises `Cancelled`."""
        session, faults = self.session, self.session.faults
        if session.values["mode"] == "full" or self.grant in session.allowed or "*" in session.allowed:
            return True
        if self.grant in session.denied:
            return False
        options: list[JsonObject] = [
            {"optionId": kind, "name": name.format(grant=self.grant), "kind": kind} for kind, name in _OPTIONS.items()
        ]
        if "same-option-ids" in faults:
            options[1]["optionId"] = options[0]["optionId"]
        if "two-of-a-kind" in faults:
            options.append({"optionId": "allow_more", "name": "Allow a little", "kind": "allow_once"})
        fields = self._fields()
        if "asks-without-diff" in faults:
            fields["content"] = []
        params: JsonObject = {
            "sessionId": session.id,
            "toolCall": {"toolCallId": self.id, **fields},
            "options": options,
        }
        cancel = Cancel() if "waits-for-answers" in faults else self.turn.cancel
        frame = session.wire.request("session/request_permission", params, cancel, late=self.late)
        self.turn.cancel.check()
        return self._decided(frame)

    def _decided(self, frame: JsonObject) -> bool:
        session, faults = self.session, self.session.faults
        outcome = table(table(frame.get("result")).get("outcome"))
        option = outcome.get("optionId") if outcome.get("outcome") == "selected" else "cancelled"
        if "cancelled-allows" in faults and option == "cancelled":
            return True
        if "unknown-allows" in faults and option not in {"cancelled", *_OPTIONS}:
            return True
        if option == "allow_always" or ("once-is-always" in faults and option == "allow_once"):
            session.allowed.add("*" if "always-is-everything" in faults else self.grant)
        if option == "reject_always":
            session.denied.add(self.grant)
        return option in {"allow_once", "allow_always", "allow_more"} or (
            "reject-runs" in faults and str(option).startswith("reject")
        )

    def progress(self) -> None:
        """It runs."""
        self.session.show(self._update(status="in_progress"))
        if "status-back" in self.session.faults:
            self.session.show(self._update(status="pending"))

    def update(self, **fields: Any) -> None:
        """A passing update, which a load does not show."""
        self.session.send(self._update(**fields))
        self.session.wire.room(self.turn.cancel)

    def close(
        self, output: str, *, is_done: bool, content: list[JsonObject] | None = None, ended: JsonObject | None = None
    ) -> None:
        """The end. `output` is what the tool gave, and the content if none is given; `ended` how its terminal ended."""
        faults = self.session.faults
        raw: Any = output if "raw-strings" in faults else {"output": output}
        text = [shown_text(output)]
        fields: JsonObject = {"status": "completed" if is_done else "failed", "rawOutput": raw}
        fields["content"] = text if content is None else content
        stored = {**fields, "content": text}
        if self.terminal is not None:
            stored = fields
            if "no-terminal-exit" not in faults:
                status = ended or {"exit_code": 1, "signal": None}
                fields["_meta"] = {"terminal_exit": {"terminal_id": self.terminal, **status}}
        self.is_closed = True
        if "open-cards-at-end" not in faults:
            plain = None if self.terminal is None else output
            self.session.show(self._update(**fields), stored=self._update(**stored), plain=plain)

    def _fields(self) -> JsonObject:
        row: JsonObject = {"title": self.title, "kind": self.kind, "status": "pending", "rawInput": self._raw}
        locations: Any = self.locations
        if "relative-paths" in self.session.faults:
            locations = [{**row, "path": "here"} for row in self.locations or [{}]]
        if "one-location" in self.session.faults:
            locations = {"path": self.session.cwd}
        return row | {"content": self.content, "locations": locations}

    def _update(self, **fields: Any) -> JsonObject:
        return {"sessionUpdate": "tool_call_update", "toolCallId": self.id, **fields}
