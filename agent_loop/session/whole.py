"""Storing a whole log at once (contract session-log.md §9, "First write").

May not know: where the events come from. Invariant: under the log's name there is nothing, or all of it, durable; the
events pass through in batches, whatever their number.
"""

from collections.abc import AsyncIterable
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.file_lock import FileLock
from agent_loop.session.layout import lock_path, make_directories
from agent_loop.session.log_file import FileOperations, open_new, publish, settle, write_all

_BATCH_BYTES: Final = 1 << 18


async def add_log(
    path: Path, header: SessionHeader, events: AsyncIterable[SessionEvent], *, operations: FileOperations
) -> None:
    """Write `events` and publish them at `path`. Raises `OSError`, `LockHeldError`, and what `events` raises."""
    await anyio.to_thread.run_sync(make_directories, path.parent)
    lock = FileLock.take(lock_path(path))
    try:
        with open_new(path) as (descriptor, _undo):

            async def write(lines: list[bytes]) -> None:
                await anyio.to_thread.run_sync(write_all, operations, descriptor, b"".join(lines))

            lines, size = [encode_header(header)], 0
            async for event in events:
                lines.append(encode_event(event))
                size += len(lines[-1])
                if size >= _BATCH_BYTES:
                    await write(lines)
                    lines, size = [], 0
            await write(lines)
            await anyio.to_thread.run_sync(publish, operations, descriptor, path)
            await anyio.to_thread.run_sync(settle, operations, path)
    finally:
        lock.release()
