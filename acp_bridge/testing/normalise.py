"""Makes two runs comparable: what differs by nature is masked, nothing else (contract snapshots.md §4).

May not know: files, processes, the agent under test. Invariant: pure and idempotent; a mask never changes a value's
type; each log is scrubbed with its own header's values; `seq` is untouched.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode

_MASK = r"\{\{(?:cwd|spill|pid|sessionId\d*|uuid\d+|id\d+|digest\d+)\}\}"
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PID_NOTE = re.compile(r"\[(?:\d+ process(?:es)? survived|still running in background): [^\]]*\]")
_PID = re.compile(r"(?:(?<=: )|(?<=, ))\d+")


class Masks:
    """The replacements of one log or one transcript. UUIDs are numbered by first sight over its whole life."""

    def __init__(self, *, cwd: str | None, session_ids: Sequence[str], spill_root: str | None = None) -> None:
        self._masks: dict[str, str] = {}
        for path, mask in ((cwd, "{{cwd}}"), (spill_root, "{{spill}}")):
            # without a directory there is nothing to mask; an empty needle would match everywhere
            for spelling in (path, os.path.realpath(path)) if path else ():
                if spelling != "/":
                    self._masks.setdefault(spelling, mask)
        for number, session_id in enumerate(session_ids, start=1):
            self._masks.setdefault(session_id, "{{sessionId}}" if number == 1 else f"{{{{sessionId{number}}}}}")
        self._uuids: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        needles = sorted(filter(None, self._masks), key=len, reverse=True)
        # a mask that stands there already is stepped over as a whole
        parts = [_MASK, *(re.escape(needle) + r"(?![\w-])" for needle in needles), _UUID]
        self._pattern = re.compile("|".join(parts))

    def text(self, text: str) -> str:
        """`text`, masked."""
        # until nothing changes: a mask can end a word and thereby free the one before it
        while (masked := self._pattern.sub(self._replace, text)) != text:
            text = masked
        return _PID_NOTE.sub(lambda note: _PID.sub("{{pid}}", note[0]), text)

    def value(self, value: Any) -> Any:
        """A JSON value with its strings masked (keys are kept); a number under the key `pid` becomes 0.

        A `digest` is the hash of a directory among other things: it is masked like a UUID.
        """
        if isinstance(value, str):
            return self.text(value)
        if (items := as_list(value)) is not None:
            return [self.value(item) for item in items]
        if (table := as_object(value)) is not None:
            return {key: self._field(key, item) for key, item in table.items()}
        return value

    def _field(self, key: str, value: Any) -> Any:
        if key == "pid" and type(value) is int:
            return 0
        if key == "digest" and isinstance(value, str) and _SHA256.fullmatch(value):
            return self._digests.setdefault(value, f"{{{{digest{len(self._digests) + 1}}}}}")
        return self.value(value)

    def _replace(self, match: re.Match[str]) -> str:
        found = match[0]
        if found in self._masks:
            return self._masks[found]
        if found.startswith("{{"):
            return found
        return self._uuids.setdefault(found.lower(), f"{{{{uuid{len(self._uuids) + 1}}}}}")


def normalise_log(records: Sequence[JsonObject], *, spill_root: str | None = None) -> list[JsonObject]:
    """A session log (header and events, as parsed): ids and paths masked, `createdAt` and `time` 0."""
    header = records[0]
    masks = Masks(cwd=header.get("cwd"), session_ids=[header["id"]], spill_root=spill_root)
    masked = [masks.value(record) for record in records]
    return [
        {key: 0 if key == ("time" if index else "createdAt") else item for key, item in record.items()}
        for index, record in enumerate(masked)
    ]


def normalise_transcript(frames: Iterable[JsonObject], masks: Masks) -> list[JsonObject]:
    """The agent's frames: masked, its request ids numbered by first sight, terminal output joined.

    The ids of its responses are the editor's, who numbers its requests 1, 2, …: they are that sequence already.
    """
    # joined first: a path may be cut in two
    return _renumber([masks.value(frame) for frame in join_terminal_output(frames)])


def _renumber(frames: list[JsonObject]) -> list[JsonObject]:
    numbers: dict[str, int | str] = {}

    def renumbered(request_id: Any) -> int | str:
        number = len(numbers) + 1
        # keyed by the JSON text: 1 and "1" are two ids
        return numbers.setdefault(encode(request_id), f"{{{{id{number}}}}}" if type(request_id) is str else number)

    output: list[JsonObject] = []
    for frame in frames:
        params = as_object(frame.get("params")) or {}
        if "method" in frame and "id" in frame:
            output.append({**frame, "id": renumbered(frame["id"])})
        elif frame.get("method") == "$/cancel_request" and "requestId" in params:
            output.append({**frame, "params": {**params, "requestId": renumbered(params["requestId"])}})
        else:
            output.append(frame)
    return output


def join_terminal_output(frames: Iterable[JsonObject]) -> list[JsonObject]:
    """Moves the bytes of a terminal into the frame that tells its exit: where they were cut is a matter of timing."""
    held: dict[str, tuple[JsonObject, str]] = {}
    output: list[JsonObject] = []
    for frame in frames:
        update = update_of(frame)
        meta = as_object(update.get("_meta")) or {}
        piece, ended = as_object(meta.get("terminal_output")), as_object(meta.get("terminal_exit"))
        if piece is not None:
            terminal: str = piece["terminal_id"]
            first, data = held.get(terminal, (frame, ""))
            held[terminal] = (first, data + piece["data"])
        if ended is not None and ended["terminal_id"] in held:
            output.append(_with_output(frame, held.pop(ended["terminal_id"])[1]))
        elif piece is None:
            output.append(frame)
        elif update.keys() != {"sessionUpdate", "toolCallId", "_meta"} or len(meta) > 1:
            output.append(_with_output(frame, None))
    return output + [_output_alone(frame, data) for frame, data in held.values()]


def _output_alone(frame: JsonObject, data: str) -> JsonObject:
    kept = {key: value for key, value in update_of(frame).items() if key in {"sessionUpdate", "toolCallId", "_meta"}}
    kept["_meta"] = {"terminal_output": kept["_meta"]["terminal_output"]}
    return _with_output({**frame, "params": {**frame["params"], "update": kept}}, data)


def _with_output(frame: JsonObject, data: str | None) -> JsonObject:
    update: JsonObject = frame["params"]["update"]
    meta: JsonObject = update["_meta"]
    rest = {key: value for key, value in meta.items() if key != "terminal_output"}
    if data is not None:
        terminal = (meta.get("terminal_exit") or meta["terminal_output"])["terminal_id"]
        rest = {"terminal_output": {"terminal_id": terminal, "data": data}, **rest}
    kept = {key: value for key, value in update.items() if key != "_meta"}
    return {**frame, "params": {**frame["params"], "update": {**kept, "_meta": rest} if rest else kept}}


def update_of(frame: JsonObject) -> JsonObject:
    """The update of a `session/update` frame, else `{}`."""
    if frame.get("method") != "session/update":
        return {}
    return as_object((as_object(frame.get("params")) or {}).get("update")) or {}
