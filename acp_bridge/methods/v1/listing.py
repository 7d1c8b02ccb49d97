"""`session/list` (acp.md §2): the stored sessions, by page.

May not know: where they are stored. Invariant: a page begins behind the last row of the page before, whatever was
updated, made or deleted meanwhile; listing opens nothing.
"""

import base64
import json
import os
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from acp_bridge.methods.v1.connection import Connection, store_failure
from acp_bridge.rpc.call import Call
from acp_bridge.rpc.codes import INVALID_PARAMS
from acp_bridge.rpc.errors import RpcError
from acp_bridge.schema import ListSessionsParams
from agent_loop.session.store import SessionStoreError, SessionSummary

PAGE: Final = 50

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS: Final = -62_135_596_800_000  # the year 1
_LAST_MS: Final = 253_402_300_799_999  # the year 9999

Key = tuple[int, str]
"""What rows are sorted by: the later, then the lower id, the earlier."""


async def list_sessions(connection: Connection, params: ListSessionsParams, _call: Call) -> dict[str, Any]:
    """`{sessions, nextCursor?}`: at most 50 rows behind `cursor`, of one directory when `cwd` names one."""
    connection.require_settings()
    if params.cwd is not None and not os.path.isabs(params.cwd):
        raise RpcError(INVALID_PARAMS, f"Invalid params: cwd {params.cwd!r:.200} is not an absolute path")
    after = _key_of_cursor(params.cursor) if params.cursor is not None else None
    try:
        stored = await connection.bridge.parts.registry.stored(params.cwd)
    except SessionStoreError as error:
        raise store_failure(error, error.session_id) from error
    # a session without a directory cannot be loaded by an editor, which always names one
    rows = [row for row in stored if row.cwd is not None and (after is None or _key(row) > after)]
    page = rows[:PAGE]
    result: dict[str, Any] = {"sessions": [_info(row) for row in page]}
    if len(rows) > PAGE:
        result["nextCursor"] = _cursor(_key(page[-1]))
    return result


def _info(row: SessionSummary) -> dict[str, Any]:
    title = {} if row.title is None else {"title": row.title}
    return {"sessionId": row.id, "cwd": row.cwd, **title, "updatedAt": iso_time(row.updated_at)}


def iso_time(epoch_ms: int) -> str:
    """ISO 8601 with milliseconds and Z; what lies beyond the years 1 to 9999 reads as their first or last moment."""
    time = _EPOCH + timedelta(milliseconds=max(_FIRST_MS, min(epoch_ms, _LAST_MS)))
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _key(row: SessionSummary) -> Key:
    return -row.updated_at, row.id


def _cursor(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key, separators=(",", ":")).encode()).decode()


def _key_of_cursor(cursor: str) -> Key:
    try:
        value: object = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        value = None
    match value:
        case [int(updated), str(session_id)]:
            return updated, session_id
        case _:
            raise RpcError(INVALID_PARAMS, f"Invalid params: cursor {cursor!r:.60} was not given by this agent")
