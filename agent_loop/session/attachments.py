"""The bytes that a log names by their content: images and other binary blocks (contract session-log.md §6).

May not know: events' meaning, editors, providers. Invariant: a name is the SHA-256 of what it names, so that no file is
ever changed, the same picture is kept once, and a name out of a foreign log leads nowhere else; who reads gets exactly
the bytes that were kept, or nothing.
"""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

from agent_loop.session.events import SessionEvent
from agent_loop.session.layout import make_directories
from agent_loop.session.log_file import FileOperations, write_all

FILES_SUFFIX: Final = ".files"
"""The directory beside a log: `<encoded id>.jsonl.files/<sha256>`."""

_REF: Final = re.compile(r"[0-9a-f]{64}")
_SIGNATURES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF[\s\S]{4}WEBP"), "image/webp"),
)


def image_type(data: bytes) -> str | None:
    """The mime type of an image that models read, by its first bytes; None for anything else."""
    return next((mime for signature, mime in _SIGNATURES if signature.match(data)), None)


def ref_of(data: bytes) -> str:
    """The name of these bytes: 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def is_ref(value: object) -> bool:
    """Whether it can be a name: what stands in a log may be anything."""
    return isinstance(value, str) and _REF.fullmatch(value) is not None


def refs_in(event: SessionEvent) -> Iterator[str]:
    """The names in the blocks of an event."""
    data = cast("dict[str, Any]", event.data) if isinstance(event.data, dict) else {}
    content: object = data.get("content")
    for block in cast("list[Any]", content) if isinstance(content, list) else []:
        ref: object = cast("dict[str, Any]", block).get("ref") if isinstance(block, dict) else None
        if isinstance(ref, str) and is_ref(ref):
            yield ref


def read_attachment(log: Path, ref: str) -> bytes | None:
    """The bytes kept beside the log at `log`; None when they are not there, or are not those any more.

    Raises `OSError` for anything but absence.
    """
    try:
        data = (_directory(log) / ref).read_bytes() if is_ref(ref) else b""
    except FileNotFoundError:
        return None
    return data if ref_of(data) == ref else None


def remove_attachments(log: Path) -> None:
    """Remove all that is kept beside the log at `log`. Raises `OSError`."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(_directory(log))


class AttachmentFiles:
    """What is kept beside one log. `write` and `sync` raise `OSError`; what could not be written waits."""

    def __init__(self, log: Path, operations: FileOperations) -> None:
        self._log = log
        self._operations = operations
        self._waiting: dict[str, bytes] = {}
        self._unsynced: list[str] = []

    def keep(self, data: bytes) -> str:
        """Take bytes for the next `write`; returns their name."""
        ref = ref_of(data)
        self._waiting[ref] = data
        return ref

    def write(self) -> None:
        """Hand what waits to the kernel, each file whole or not at all."""
        while self._waiting:
            ref = next(iter(self._waiting))
            path = _directory(self._log) / ref
            if not path.exists():
                make_directories(path.parent)
                self._write(path, self._waiting[ref])
                self._unsynced.append(ref)
            del self._waiting[ref]

    def sync(self) -> None:
        """Make durable what was written. May run in another thread while more is written."""
        written, self._unsynced = self._unsynced, []
        try:
            for ref in written:
                descriptor = os.open(_directory(self._log) / ref, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    self._operations.sync(descriptor)
                finally:
                    os.close(descriptor)
            if written:
                self._operations.sync_directory(_directory(self._log))
        except OSError:
            self._unsynced += written
            raise

    def read(self, ref: str) -> bytes | None:
        """What `ref` names, written or still waiting; None when it is not kept. Raises `OSError`."""
        waiting = self._waiting.get(ref)
        return read_attachment(self._log, ref) if waiting is None else waiting

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_suffix(".tmp")
        # the lock of the log makes this name ours: what lies there is left over from a crash
        temporary.unlink(missing_ok=True)
        with contextlib.ExitStack() as undo:
            undo.callback(temporary.unlink, missing_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                write_all(self._operations, descriptor, data)
            finally:
                os.close(descriptor)
            temporary.rename(path)


def _directory(log: Path) -> Path:
    return log.with_name(log.name + FILES_SUFFIX)
