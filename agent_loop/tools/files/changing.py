"""What `write` and `edit` share: plan, preview, write, diff card (contract tools-and-bash.md §6).

May not know: how the new text comes about, where it is kept. Invariant: a file that the session has not seen as it now
is does not change; what the card shows in the end is what was really written.
"""

import re
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio.to_thread

from agent_loop.tools.files.diffs import Changes, changes_of
from agent_loop.tools.files.places import place_of, short_path, shown_path
from agent_loop.tools.files.seam import FileProblem, Place, SeenFiles
from agent_loop.tools.seam import (
    CallCard,
    DiffCard,
    Effect,
    ResultCard,
    Subject,
    Tool,
    ToolContext,
    ToolOutcome,
    resolved_path,
)
from agent_loop.vocabulary import Block, JsonObject, text_block

_MARK: Final = re.compile(r"\[redacted:[^\]\n]+\]")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The whole text that a call would leave, as it is stored, and what the model is told of it."""

    text: str
    told: str


@dataclass(frozen=True, slots=True)
class _Plan:
    place: Place
    rewrite: Rewrite
    changes: Changes


class ChangingTool(Tool):
    """Replaces the text of one file, `file_path`."""

    effect: Effect = "edit"
    verb: str

    @abstractmethod
    def rewrite(self, arguments: JsonObject, old: str | None, path: str) -> Rewrite:
        """The new text, from the old one (None: there is no file). Pure; runs in a thread. Raises `FileProblem`."""

    async def prepare(self, arguments: JsonObject, context: ToolContext) -> JsonObject | None:
        """`{diffs, line?}`, as `meta` of the result will have them. Raises `FileProblem` when it can only fail."""
        return _facts((await self._plan(arguments, context)).changes)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutcome:
        """`meta {diffs, line?, added, removed}`. Raises `FileProblem`."""
        plan = await self._plan(arguments, context)
        await context.files.write(plan.place, plan.rewrite.text, signal=context.signal)
        await anyio.to_thread.run_sync(context.files.seen.note, plan.place, plan.rewrite.text)
        counts: JsonObject = {"added": plan.changes.added, "removed": plan.changes.removed}
        return ToolOutcome([text_block(plan.rewrite.told)], meta=_facts(plan.changes) | counts)

    def subject(self, arguments: JsonObject, cwd: str) -> Subject:
        """The file."""
        return Subject(paths=(resolved_path(cwd, arguments["file_path"]),))

    def present_call(self, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None) -> CallCard:
        """With a preview its diffs; without one nobody has looked at the file yet, and none are claimed."""
        path: str = arguments["file_path"]
        facts = preview or {}
        return DiffCard(
            f"{self.verb} {short_path(path, cwd)}", facts.get("diffs", []), [_location(shown_path(path, cwd), facts)]
        )

    def present_result(self, arguments: JsonObject, content: list[Block], meta: JsonObject | None) -> ResultCard | None:  # noqa: ARG002 - the log has it all
        """The diffs that were written; an error as it is."""
        if meta is None:
            return None
        diffs: list[JsonObject] = meta["diffs"]
        return DiffCard(self.verb, diffs, [_location(diffs[0]["path"], meta)] if diffs else [])

    async def _plan(self, arguments: JsonObject, context: ToolContext) -> _Plan:
        place = place_of(arguments["file_path"], context)
        old = await context.files.read(place, signal=context.signal)
        return await anyio.to_thread.run_sync(partial(self._work_out, arguments, old, place, context.files.seen))

    def _work_out(self, arguments: JsonObject, old: str | None, place: Place, seen: SeenFiles) -> _Plan:
        # nothing is lost of an empty file
        if old and not seen.knows(place):
            raise FileProblem(f"{place.path} was not read in this session; read it, then change it", "STALE")
        if old and not seen.is_current(place, old):
            raise FileProblem(
                f"{place.path} has changed since it was read; read it again, then make the change that is still right",
                "STALE",
            )
        rewrite = self.rewrite(arguments, old, place.path)
        if old is not None and (mark := _foreign_mark(old, rewrite.text)):
            raise FileProblem(
                f"{mark} is not what stands in {place.path}: it is shown to you in the place of a secret, which the "
                "change would destroy; change the lines around it with edit",
                "NO_MATCH",
            )
        return _Plan(place, rewrite, changes_of(place.path, old, rewrite.text))


def _foreign_mark(old: str, new: str) -> str | None:
    """A redaction mark that the old text does not have."""
    return next((mark for mark in _MARK.findall(new) if mark not in old), None)


def _facts(changes: Changes) -> JsonObject:
    line: JsonObject = {} if changes.line is None else {"line": changes.line}
    return {"diffs": changes.diffs} | line


def _location(path: str, facts: JsonObject) -> JsonObject:
    return {"path": path, "line": facts["line"]} if "line" in facts else {"path": path}
