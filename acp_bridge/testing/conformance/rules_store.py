"""The rules of listing, closing and deleting sessions (section E).

May not know: what a session contains. Invariant: each check speaks about one rule, by its id in the manifest; every
session that is to be listed has had a prompt, since an agent may keep no empty ones.
"""

import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab
from acp_bridge.testing.conformance.stimulus import shell
from acp_bridge.testing.conformance.turns import (
    FOREVER,
    Check,
    begin,
    body_of,
    gone,
    load,
    require,
    shown,
    stop_reason,
)
from acp_bridge.testing.editor import Entry
from acp_bridge.testing.json_values import JsonObject, as_list, as_object

_MANY = 57
_FEW = 3
_MOST_PAGES = 100
_GONE_SECONDS = 10.0
_QUIET_SECONDS = 0.3
_HELD: JsonObject = {"stream": [{"text": ["head"]}, {"gate": "held"}, {"done": True}]}


def the_list_spans_all_directories(lab: Lab) -> None:
    """LIST-01."""
    with lab.agent() as agent:
        elsewhere, unused = lab.directory("elsewhere"), lab.directory("unused")
        sessions = {*_sessions(agent, lab.cwd, 1), *_sessions(agent, elsewhere, 1)}
        listed = {row.get("sessionId") for row in _page(agent)}
        require(sessions <= listed, f"of two sessions in two directories the list holds {len(sessions & listed)}")
        rows = _page(agent, cwd=str(unused))
        require(rows == [], f"the list of an unused directory: {shown(rows)}")


def the_filter_comes_before_the_pages(lab: Lab) -> None:
    """LIST-02."""
    with lab.agent() as agent:
        elsewhere = lab.directory("elsewhere")
        few = _sessions(agent, elsewhere, _FEW)
        _sessions(agent, lab.cwd, _MANY)
        listed = [row.get("sessionId") for row in _page(agent, cwd=str(elsewhere))]
        require(
            sorted(map(str, listed)) == sorted(few), f"of {_FEW} sessions in a directory, page 1 holds {len(listed)}"
        )


def each_session_is_listed_once(lab: Lab) -> None:
    """LIST-03."""
    with lab.agent() as agent:
        sessions = _sessions(agent, lab.cwd, _MANY + _FEW)
        listed: list[str] = []
        result: JsonObject = {"nextCursor": None}
        for page in range(_MOST_PAGES):
            result = agent.call("session/list", {"cursor": result["nextCursor"]} if page else {})
            listed += [row.get("sessionId") for row in as_list(result.get("sessions")) or []]
            if result.get("nextCursor") is None:
                break
        require(result.get("nextCursor") is None, f"after {_MOST_PAGES} pages there is still a cursor")
        if "nextCursor" in result:
            lab.warn("the last page has a nextCursor of null, where it has to be absent")
        require(len(set(listed)) == len(listed), f"{len(listed) - len(set(listed))} sessions were listed twice")
        require(
            set(sessions) <= set(listed), f"of {len(sessions)} sessions {len(set(sessions) & set(listed))} are listed"
        )


def an_invented_cursor_is_an_error(lab: Lab) -> None:
    """LIST-04."""
    with lab.agent() as agent:
        agent.error("session/list", {"cursor": "xyz"})


def listed_sessions_are_described_not_opened(lab: Lab) -> None:
    """LIST-05."""
    with lab.agent() as agent:
        session = _sessions(agent, lab.cwd, 1)[0]
    with lab.agent() as second:
        for row in _page(second):
            require(Path(str(row.get("cwd"))).is_absolute(), f"the cwd is not absolute: {shown(row)}")
            require("updatedAt" not in row or _is_iso(row["updatedAt"]), f"updatedAt is no ISO 8601: {shown(row)}")
            is_extra = "additionalDirectories" in row and not second.advertises(
                "sessionCapabilities.additionalDirectories"
            )
            require(not is_extra, f"additionalDirectories are not advertised: {shown(row)}")
        frame = second.prompt(session)
        require("error" in frame, f"a prompt for a session that was only listed: {shown(body_of(frame))}")


def closing_ends_the_prompt_first(lab: Lab) -> None:
    """CLOSE-01."""
    with lab.agent() as agent:
        session = agent.new_session()
        turn = begin(lab, agent, session, _HELD)
        turn.text()
        request_id = agent.request("session/close", {"sessionId": session})
        closed = agent.response(request_id)
        require("result" in closed, f"session/close: {shown(body_of(closed))}")
        turn.cancelled("by session/close")
        order = [entry.frame.get("id") for entry in tuple(agent.entries) if _is_response(entry)]
        require(order.index(turn.id) < order.index(request_id), "session/close was answered before the prompt it ended")


def nothing_is_left_of_a_closed_session(lab: Lab) -> None:
    """CLOSE-02."""
    with lab.agent() as agent:
        session = agent.new_session()
        # helpers that an agent keeps for itself start with its first command
        begin(lab, agent, session, shell("true")).end()
        before = agent.children()
        turn = begin(lab, agent, session, shell("touch started; " + FOREVER))
        turn.file(lab.cwd / "started")
        started = agent.children() - before
        agent.call("session/close", {"sessionId": session})
        left = gone(started, agent, seconds=_GONE_SECONDS)
        require(not left, f"{len(left)} processes of the session are alive after session/close")
        turn.end()
        since = len(agent.entries)
        agent.quiet(_QUIET_SECONDS)
        late = agent.updates(session, since=since)
        require(not late, f"a closed session sent {shown(late)}")
        frame = agent.prompt(session)
        require("error" in frame, f"a prompt for a closed session: {shown(body_of(frame))}")
        if agent.advertises("loadSession"):
            load(lab, agent, session)


def closing_the_closed_is_answered(lab: Lab) -> None:
    """CLOSE-03."""
    with lab.agent() as agent:
        session = agent.new_session()
        for each in (session, session, str(uuid.uuid4())):
            agent.response(agent.request("session/close", {"sessionId": each}))


def the_deleted_is_not_listed(lab: Lab) -> None:
    """DEL-01."""
    with lab.agent() as agent:
        kept, session = _sessions(agent, lab.cwd, 2)
        agent.call("session/delete", {"sessionId": session})
        if agent.advertises("sessionCapabilities.list"):
            listed = [row.get("sessionId") for row in _page(agent)]
            require(session not in listed, "a deleted session is still listed")
            require(kept in listed, "with one session another one was deleted")
        for what, each in (("deleted", session), ("unknown", str(uuid.uuid4()))):
            frame = agent.response(agent.request("session/delete", {"sessionId": each}))
            if "error" in frame:
                lab.warn(f"deleting a session that is {what}: {shown(body_of(frame))}")


def deleting_a_busy_session_settles_everything(lab: Lab) -> None:
    """DEL-02."""
    with lab.agent() as agent:
        session = _sessions(agent, lab.cwd, 1)[0]
        turn = begin(lab, agent, session, _HELD)
        turn.text()
        frame = agent.response(agent.request("session/delete", {"sessionId": session}))
        lab.model.release("held")
        turn.end()
        agent.quiet(_QUIET_SECONDS)
        if "result" in frame and agent.advertises("sessionCapabilities.list"):
            listed = [row.get("sessionId") for row in _page(agent)]
            require(session not in listed, "a session that was deleted while its prompt ran came back")


def _sessions(agent: LabAgent, cwd: Path, count: int) -> list[str]:
    """New sessions in `cwd`, each with one prompt."""
    opened = [agent.new_session(cwd=str(cwd)) for _ in range(count)]
    for request_id in [agent.send_prompt(session) for session in opened]:
        frame = agent.response(request_id)
        require(stop_reason(frame), f"a first prompt got {shown(body_of(frame))}")
    return opened


def _page(agent: LabAgent, **params: Any) -> list[JsonObject]:
    return [as_object(row) or {} for row in as_list(agent.call("session/list", params).get("sessions")) or []]


def _is_iso(text: Any) -> bool:
    try:
        datetime.fromisoformat(str(text))
    except ValueError:
        return text is None
    return True


def _is_response(entry: Entry) -> bool:
    return entry.sender == "agent" and "method" not in entry.frame


CHECKS: dict[str, Check] = {
    "LIST-01": the_list_spans_all_directories,
    "LIST-02": the_filter_comes_before_the_pages,
    "LIST-03": each_session_is_listed_once,
    "LIST-04": an_invented_cursor_is_an_error,
    "LIST-05": listed_sessions_are_described_not_opened,
    "CLOSE-01": closing_ends_the_prompt_first,
    "CLOSE-02": nothing_is_left_of_a_closed_session,
    "CLOSE-03": closing_the_closed_is_answered,
    "DEL-01": the_deleted_is_not_listed,
    "DEL-02": deleting_a_busy_session_settles_everything,
}
"""Rule id → its check."""
