"""What `/export` writes.

May not know: commands. Invariant: no secret that is known, and nothing that looks like one, leaves with the file; a
file that exists is not touched, and one that could not be written whole is not there.
"""

import os
from contextlib import aclosing
from typing import Final

from acp_bridge.translate.v1.cards import FindTool
from agent_loop.session.log import Session

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SHORT: Final = 8


async def write_markdown(session: Session, given: str, *, find_tool: FindTool) -> str:
    """Write the conversation so far; returns the path. `given` is relative to the session's directory, or from `~`.

    A directory, and nothing at all, get a file that is named after the session. Raises `OSError`, `SessionStoreError`.
    """
    # only who exports waits for the writer of documents
    from acp_bridge.cli.documents import Page
    from acp_bridge.cli.redaction import SecretFinder
    from acp_bridge.cli.rewrite import Rewriter

    path = _place(session, given)
    rewriter = Rewriter(SecretFinder(session.secrets))
    page = Page(find_tool, form="md", title=rewriter.json(session.title))
    descriptor = os.open(path, _NEW_FILE, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(page.begin(rewriter.header(session.header), None))
            async with aclosing(session.events()) as events:
                async for event in events:
                    for done in rewriter.feed(event):
                        file.write(page.feed(done))
            for done in rewriter.finish():
                file.write(page.feed(done))
            file.write(page.finish())
    except BaseException:
        os.unlink(path)
        raise
    return path


def _place(session: Session, given: str) -> str:
    path = os.path.join(session.cwd or os.sep, os.path.expanduser(given))
    if os.path.isdir(path):
        path = os.path.join(path, f"session-{session.id[:_SHORT]}.md")
    return os.path.normpath(path)
