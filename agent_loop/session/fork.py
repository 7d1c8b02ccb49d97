"""A log that begins with another's turns (contract session-log.md §7, "Seeding/fork").

May not know: live sessions, files. Invariant: streams from store to store, never a list of events; the parent is only
read, and of one that is being written nothing of the open turn is taken.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace

from agent_loop.session.attachments import refs_in
from agent_loop.session.events import SessionEvent, SessionHeader
from agent_loop.session.json_check import own_json
from agent_loop.session.store import SessionStore, StoredLog


async def fork_log(store: SessionStore, parent_id: str, header: SessionHeader) -> bool:
    """Store a log of `header`, completed as a fork's, with what stands before the parent's open turn, if one is open.

    False: there is nothing, and nothing was stored. Raises what `read` and `add` of the store raise.
    """
    length = await _settled_length(store, parent_id)
    if not length:
        return False
    header = replace(header, parent_session=parent_id, seed_length=length)
    own_json("session", header.to_json())
    log = await store.read(parent_id)
    async with aclosing(log.events) as events:
        await store.add(header, _with_attachments(store, header, log, _first(length, events)))
    return True


async def _settled_length(store: SessionStore, session_id: str) -> int:
    length, open_at = 0, None
    log = await store.read(session_id)
    async with aclosing(log.events) as events:
        async for event in events:
            length = event.seq + 1
            if event.type == "turn/start":
                open_at = event.seq
            elif event.type == "turn/end":
                open_at = None
    return length if open_at is None else open_at


async def _first(count: int, events: AsyncIterator[SessionEvent]) -> AsyncGenerator[SessionEvent, None]:
    async for event in events:
        if event.seq == count:
            return
        yield event


async def _with_attachments(
    store: SessionStore, header: SessionHeader, log: StoredLog, events: AsyncGenerator[SessionEvent, None]
) -> AsyncGenerator[SessionEvent, None]:
    """The events; what each of them names is copied before it."""
    async with aclosing(events):
        async for event in events:
            for ref in refs_in(event):
                data = await log.attachment(ref)
                if data is not None:
                    await store.keep(header, data)
            yield event
