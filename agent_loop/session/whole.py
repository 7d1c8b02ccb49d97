"""Storing a whole log at once (contract session-log.md §9, "First write").

May not know: where the events come from. Invariant: under the log's name there is nothing, or all of it, durable; the
events pass through in batches, whatever their number.
"""

import contextlib
import os
from collections.abc import AsyncIterable
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.file_lock import FileLock
from agent_loop.session.layout import lock_path, make_directories, sync_directory
from agent_loop.session.log_file import FileOperations

_BATCH_BYTES: Final = 1 << 18


async def add_log(
    path: Path, header: SessionHeader, events: AsyncIterable[SessionEvent], *, operations: FileOperations
) -> None:
    """Write `events` and publish them at `path`. Raises `OSError`, `LockHeldError`, and what `events` raises."""
    await anyio.to_thread.run_sync(make_directories, path.parent)
    with contextlib.ExitStack() as undo:
        lock = FileLock.take(lock_path(path))
        undo.callback(lock.release)
        temporary = path.with_name(path.name + ".tmp")
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        undo.callback(temporary.unlink, missing_ok=True)
        undo.callback(os.close, descriptor)

        def write(lines: list[bytes]) -> None:
            rest = memoryview(b"".join(lines))
            while rest:
                rest = rest[operations.write(descriptor, rest) :]

        def publish() -> None:
            operations.sync(descriptor)
            # a link, never a rename: a log that is there already stays as it is
            os.link(temporary, path)
            temporary.unlink()
            sync_directory(path.parent)

        lines, size = [encode_header(header)], 0
        async for event in events:
            lines.append(encode_event(event))
            size += len(lines[-1])
            if size >= _BATCH_BYTES:
                await anyio.to_thread.run_sync(write, lines)
                lines, size = [], 0
        await anyio.to_thread.run_sync(write, lines)
        await anyio.to_thread.run_sync(publish)
