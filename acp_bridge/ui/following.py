"""The stream of events of one session's page.

May not know: HTTP. Invariant: a log is only read; the stream ends with what makes going on impossible, said in words,
or when the server ends.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Final

import anyio.to_thread

from acp_bridge.cli import times
from acp_bridge.owner.asking import owner_state
from acp_bridge.owner.places import is_running
from acp_bridge.translate.v1.cards import FindTool
from acp_bridge.ui.frames import KEEP_ALIVE, frame
from acp_bridge.ui.live_view import LiveView
from agent_loop.runtime import Runtime
from agent_loop.session.file_lock import Holder, read_holder
from agent_loop.session.follow import LogFollower
from agent_loop.session.layout import lock_path
from agent_loop.session.store import SessionNotFoundError, SessionStore, SessionStoreError

LOOK_SECONDS: Final = 0.25
"""Between two looks at a log that has not grown."""
OWNER_LOOKS: Final = 4
"""Every so many looks it is asked whether the owner still runs."""
KEEP_ALIVE_LOOKS: Final = 60


@dataclass(frozen=True, slots=True)
class Sources:
    """`find_log`: the file of a session's log, None when there is none. `zone` None: where this machine is."""

    store: SessionStore
    find_log: Callable[[str], Path | None]
    find_tool: FindTool
    runtime: Runtime
    zone: tzinfo | None = None

    def moment(self, ms: int) -> str:
        """Epoch ms for people."""
        return times.local(ms, self.zone)


async def session_frames(
    sources: Sources, session_id: str, *, ended: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """What the browser is sent, until `ended`."""
    path = sources.find_log(session_id)
    if path is None:
        yield frame("problem", SessionNotFoundError(session_id).message)
        return
    follower = LogFollower(session_id, path)
    owner = _Owner(lock_path(path))
    view: LiveView | None = None
    looks = 0
    try:
        while not ended():
            piece = await anyio.to_thread.run_sync(follower.read)
            if view is None or piece.begins:
                view = LiveView(piece.header, sources.find_tool, moment=sources.moment, warn=_unheard)
            for event in piece.events:
                view.feed(event)
            if not piece.at_end:
                continue
            told = view.frames()
            if not looks % OWNER_LOOKS:
                told += owner.frames()
            looks += 1
            if not looks % KEEP_ALIVE_LOOKS:
                told.append(KEEP_ALIVE)
            for each in told:
                yield each
            await sources.runtime.sleep(LOOK_SECONDS)  # a file of another process: there is no event for it everywhere
    except FileNotFoundError:
        yield frame("problem", SessionNotFoundError(session_id).message)
    except SessionStoreError as error:
        yield frame("problem", error.message)
    except OSError as error:
        yield frame("problem", f"the log cannot be read: {error.strerror or error}")
    finally:
        follower.close()


class _Owner:
    """Whether the process that writes a log can be spoken to; it is connected to only when its lock file changes."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self._seen: tuple[Holder | None, bool] | None = None

    def frames(self) -> list[bytes]:
        """What has changed since it was last called."""
        holder = read_holder(self._lock)
        seen = holder, holder is not None and is_running(holder.pid)
        if seen == self._seen:
            return []
        self._seen = seen
        return [frame("owner", owner_state(holder))]


def _unheard(_problem: str) -> None:
    """The agent that owns the session has it in its log file."""
