"""The bytes beside a log, carried inside an exported one (contract session-log.md §6).

May not know: files, formats. Invariant: what is put in on the way out is what is taken out on the way in, checked by
its name; of a binary block that was text only that text leaves, in which every secret was looked for.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from typing import Any, cast

from agent_loop.session.attachments import is_ref, ref_of, refs_in
from agent_loop.session.events import SessionEvent, make_event
from agent_loop.vocabulary import Block


async def with_bytes(event: SessionEvent, attachment: Callable[[str], Awaitable[bytes | None]]) -> SessionEvent:
    """The event with the bytes that its blocks name in them, as base64 under `data`."""
    found = {ref: await attachment(ref) for ref in refs_in(event)}
    return _changed(event, lambda block: _filled(block, found)) if found else event


def without_bytes(event: SessionEvent) -> tuple[SessionEvent, list[bytes]]:
    """The event as it is logged, and the bytes that came with it."""
    if not any(refs_in(event)):
        return event, []
    carried: list[bytes] = []

    def emptied(block: Block) -> Block:
        if not is_ref(block.get("ref")) or "data" not in block:
            return block
        data = _decoded(block["data"])
        if ref_of(data) == block["ref"]:
            carried.append(data)
        return {key: value for key, value in block.items() if key != "data"}

    return _changed(event, emptied), carried


def _filled(block: Block, found: dict[str, bytes | None]) -> Block:
    if block.get("ref") not in found:
        return block
    if "text" in block:
        return {key: value for key, value in block.items() if key != "ref"}
    data = found[block["ref"]]
    return block if data is None else {**block, "data": b64encode(data).decode()}


def _decoded(value: Any) -> bytes:
    try:
        return b64decode(value, validate=True)
    except (binascii.Error, ValueError, TypeError):
        return b""


def _changed(event: SessionEvent, change: Callable[[Block], Block]) -> SessionEvent:
    content = [change(cast("Block", block)) if isinstance(block, dict) else block for block in event.data["content"]]
    return make_event(event.type, event.seq, event.time, {**event.data, "content": content})
