"""`sessions export`.

May not know: how a log is kept, what a format looks like. Invariant: no secret that is known, and nothing that looks
like one, leaves with a file; what was taken out is said; a file that could not be written whole is not there.
"""

import os
from collections.abc import Generator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import BinaryIO, Final

from acp_bridge.cli.arguments import ExportSession
from acp_bridge.cli.carried import with_bytes
from acp_bridge.cli.documents import document
from acp_bridge.cli.parts import Parts
from acp_bridge.cli.progress import progress
from acp_bridge.cli.redaction import SecretFinder
from acp_bridge.cli.rewrite import Rewriter
from acp_bridge.cli.selection import CommandError, select

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


async def export_session(parts: Parts, command: ExportSession) -> None:
    """Raises `CommandError`, `SessionStoreError`, `OSError`."""
    selected = await select(parts.store, command.id)
    log = await parts.store.read(selected.id)
    rewriter = Rewriter(SecretFinder(parts.secrets))
    summary = selected.summary and replace(selected.summary, title=rewriter.json(selected.summary.title))
    page = document(command.format, parts.find_tool)
    total, size = (summary.event_count, summary.size) if summary else (0, 0)
    with (
        _target(parts, command) as file,
        progress(parts.streams.err, "exporting", total=total, size=size) as advance,
    ):
        file.write(page.begin(rewriter.header(log.header), summary))
        async with aclosing(log.events) as events:
            async for event in events:
                advance(event.seq)
                for done in rewriter.feed(event):
                    whole = await with_bytes(done, log.attachment) if command.format == "jsonl" else done
                    file.write(page.feed(whole))
        for done in rewriter.finish():
            file.write(page.feed(done))
        file.write(page.finish())
        file.flush()
    found = ", ".join(f"{what} ({count}×)" for what, count in sorted(rewriter.counts.items()))
    parts.streams.say(f"taken out: {found}" if found else "nothing was taken out: no secret was found")
    if command.target is not None:
        parts.streams.say(f"written: {command.target}")


@contextmanager
def _target(parts: Parts, command: ExportSession) -> Generator[BinaryIO]:
    if command.target is None:
        yield parts.streams.out.buffer
        return
    path = os.path.realpath(command.target)
    exists = os.path.lexists(path)
    if exists and not command.force:
        raise CommandError(f"{command.target} exists; --force replaces it")
    if exists and not os.path.isfile(path):
        raise CommandError(f"{command.target} is no file that could be replaced")
    # beside it first: an older export stays until the new one is whole
    beside = f"{path}.{os.getpid()}.part" if exists else path
    descriptor = os.open(beside, _NEW_FILE, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        if exists:
            os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
