"""Files as the editor has them, unsaved buffers included (`fs/*`, surface.md §1.3).

May not know: tools, cards. Invariant: only what the client has advertised is asked of it; what a path is — a directory,
a binary file, one too large — is judged by the disk, as without an editor. A file outside the workspace may be none of
the editor's: when it says so, the disk answers.
"""

from dataclasses import dataclass
from typing import Any, Final

from acp_bridge.rpc.errors import ConnectionClosed, RpcError
from acp_bridge.rpc.json_text import encode
from acp_bridge.schema import FileText, SchemaProblem, parse
from acp_bridge.wire import Wire
from agent_loop.abort import AbortSignal
from agent_loop.tools.files.disk import DiskFiles, check_text, off_loop
from agent_loop.tools.files.numbering import window_of
from agent_loop.tools.files.seam import FileBackend, FileProblem, LineWindow, Place

CONTENT_BYTES: Final = (4 << 20) - 4096
"""Of a text as JSON, so that its line stays below 4 MiB; a larger one is written to the disk."""
_NOT_FOUND: Final = -32002


@dataclass(frozen=True, slots=True)
class _Refused:
    """The client's error."""

    code: int
    message: str


class ClientFiles(FileBackend):
    """For one session. `reads`, `writes`: what the client has advertised; the disk does the rest."""

    def __init__(self, wire: Wire, session_id: str, *, reads: bool, writes: bool) -> None:
        super().__init__()
        self._wire = wire
        self._session_id = session_id
        self._reads = reads
        self._writes = writes
        self._disk = DiskFiles()

    async def read(self, place: Place, *, signal: AbortSignal) -> str | None:
        if not self._reads:
            return await self._disk.read(place, signal=signal)
        stored = await off_loop(lambda: check_text(place), place, "read", signal)
        answer = await self._ask("read_text_file", place, {}, signal)
        if isinstance(answer, _Refused):
            # a client has its own ways to say that there is no such file
            if not stored:
                return None
            if answer.code == _NOT_FOUND or not place.inside:
                return await self._disk.read(place, signal=signal)
            raise FileProblem(f"the editor did not read {place.path}: {answer.message}", "IO")
        text = _content(answer, place)
        # some clients have an empty text for a file that does not exist
        return text if stored or text else None

    async def window(self, place: Place, *, first: int, count: int, signal: AbortSignal) -> LineWindow:
        if not self._reads:
            return await self._disk.window(place, first=first, count=count, signal=signal)
        answer = await self._ask("read_text_file", place, {"line": first, "limit": count + 1}, signal)
        if isinstance(answer, _Refused):
            return await self._disk.window(place, first=first, count=count, signal=signal)
        window = window_of(_content(answer, place), first=1, count=count)
        return LineWindow(window.lines, first, None, more=window.more)

    async def write(self, place: Place, text: str, *, signal: AbortSignal) -> None:
        if not self._writes or not _fits(text):
            await self._disk.write(place, text, signal=signal)
            return
        answer = await self._ask("write_text_file", place, {"content": text}, signal)
        if isinstance(answer, _Refused):
            if place.inside:
                raise FileProblem(f"the editor did not write {place.path}: {answer.message}", "IO")
            await self._disk.write(place, text, signal=signal)

    async def _ask(
        self, verb: str, place: Place, more: dict[str, Any], signal: AbortSignal
    ) -> dict[str, Any] | _Refused:
        params = {"sessionId": self._session_id, "path": place.path, **more}
        try:
            return await self._wire.request(f"fs/{verb}", params, signal=signal)
        except ConnectionClosed as error:
            raise FileProblem(f"the editor went away before it answered for {place.path}", "aborted") from error
        except RpcError as error:
            if signal.aborted:
                raise FileProblem(f"the turn ended before the editor answered for {place.path}", "aborted") from error
            return _Refused(error.code, error.message)


def _content(answer: dict[str, Any], place: Place) -> str:
    try:
        return parse(FileText, answer).content
    except SchemaProblem as error:
        raise FileProblem(f"the editor's answer for {place.path} has no text: {error}", "IO") from error


def _fits(text: str) -> bool:
    """Whether JSON can say it, in a line that a client takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # bytes that are no UTF-8
        return False
    return len(encode(text)) <= CONTENT_BYTES
