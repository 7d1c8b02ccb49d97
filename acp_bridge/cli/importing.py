"""`sessions import`.

May not know: how a log is kept. Invariant: every line is checked as a load checks it, before the session is there; it
is there whole or not at all, and no stored session is ever replaced.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import BinaryIO

import anyio.to_thread

from acp_bridge.cli.arguments import ImportSession
from acp_bridge.cli.carried import without_bytes
from acp_bridge.cli.parts import Parts
from acp_bridge.cli.progress import Advance, progress
from acp_bridge.cli.remap import PathError, PathMap, full_path, parse_mapping
from acp_bridge.cli.rewrite import Rewriter
from acp_bridge.cli.selection import CommandError
from agent_loop.session.events import LOG_VERSION, SessionEvent, SessionHeader
from agent_loop.session.scan import LogScan
from agent_loop.session.store import SessionDamagedError, SessionVersionError


async def import_session(parts: Parts, command: ImportSession) -> None:
    """Raises `CommandError`, `SessionStoreError`, `OSError`."""
    try:
        with await anyio.to_thread.run_sync(partial(open, command.file, "rb")) as file:
            await _import(parts, command, file)
    except PathError as error:
        raise CommandError(str(error)) from error
    except (SessionDamagedError, SessionVersionError) as error:
        raise CommandError(f"nothing was imported: {error.message}") from error


async def _import(parts: Parts, command: ImportSession, file: BinaryIO) -> None:
    read: list[SessionEvent] = []
    scan = LogScan(os.path.basename(command.file), file, read.append)
    recorded = await anyio.to_thread.run_sync(scan.read_header)
    rewriter = Rewriter(PathMap(_mappings(command, recorded)))
    header = replace(rewriter.header(recorded), version=LOG_VERSION)
    if command.cwd is not None:
        header = replace(header, cwd=full_path(command.cwd))
    if parts.store.exists(header.id):
        header = replace(header, id=parts.runtime.new_id())
    size = os.fstat(file.fileno()).st_size
    with progress(parts.streams.err, "importing", total=size, size=size) as advance:
        async with aclosing(_events(scan, read, rewriter, advance)) as events:
            await parts.store.add(header, _kept(parts, header, events))
    _report(parts, header, recorded)
    for old, count in sorted(rewriter.counts.items()):
        parts.streams.say(f"{old} was replaced ({count}×)")
    if scan.kept_bytes < size:
        parts.streams.say("its last line was not complete and was left out")
    if scan.crash.repair():
        parts.streams.say("its last turn was cut off; it is closed when the session is opened")


def _mappings(command: ImportSession, recorded: SessionHeader) -> list[tuple[str, str]]:
    mappings = [parse_mapping(given) for given in command.mappings]
    if command.cwd is None:
        return mappings
    here, there = full_path(command.cwd), recorded.cwd or ""
    if not os.path.isdir(here):
        raise CommandError(f"{here} is no directory; --cwd names where the session belongs on this machine")
    # what stands in the root of a machine, or nowhere, cannot be told from other text
    if there.startswith("/") and there.strip("/") and there != here:
        mappings.insert(0, (there.rstrip("/"), here))
    return mappings


async def _kept(
    parts: Parts, header: SessionHeader, events: AsyncGenerator[SessionEvent, None]
) -> AsyncGenerator[SessionEvent, None]:
    """The events; the bytes that came in one are put beside the log before it."""
    async for event in events:
        logged, carried = without_bytes(event)
        for data in carried:
            await parts.store.keep(header, data)
        yield logged


async def _events(
    scan: LogScan, read: list[SessionEvent], rewriter: Rewriter, advance: Advance
) -> AsyncGenerator[SessionEvent, None]:
    more = True
    while more:
        more = await anyio.to_thread.run_sync(scan.advance)
        for event in read:
            for done in rewriter.feed(event):
                yield done
        read.clear()
        advance(scan.kept_bytes)
    for done in rewriter.finish():
        yield done
    if scan.bad_line is not None:
        # a load would cut it off as the trace of a crash; a file that was passed on should hold none
        raise scan.bad_line
    if not scan.event_count:
        raise CommandError("nothing was imported: the file holds no event")


def _report(parts: Parts, header: SessionHeader, recorded: SessionHeader) -> None:
    where = f" for {parts.short_path(header.cwd)}" if header.cwd else ""
    parts.streams.tell(f"imported {header.id}{where}")
    if header.id != recorded.id:
        parts.streams.say(f"its id is new: a session {recorded.id} is stored already")
    if header.cwd and not os.path.isdir(header.cwd):
        parts.streams.say(f"its directory {header.cwd} is not here; delete it and import it with --cwd DIR to move it")
