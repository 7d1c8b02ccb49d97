"""The rules of the wire: lines, frames, ids, garbage, size (section A).

May not know: what a session or a tool is for. Invariant: each check speaks about one rule, by its id in the manifest.
"""

import json
import time
from collections import Counter
from typing import Any

from acp_bridge.testing.conformance.agent import LabAgent
from acp_bridge.testing.conformance.lab import Lab, initialize_params
from acp_bridge.testing.conformance.model import optional
from acp_bridge.testing.conformance.stimulus import (
    NO_TOOL,
    Answer,
    MakeAnswer,
    read_file,
    read_tool,
    said,
    shell,
    write_file,
)
from acp_bridge.testing.conformance.turns import (
    Check,
    begin,
    body_of,
    cancel_frame,
    line,
    load,
    prompt_frame,
    provoked,
    ran,
    require,
    shown,
    stop_reason,
)
from acp_bridge.testing.conformance.verdicts import Broken
from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode

# what tears lines and decoders apart: separators that some call newlines, NUL, a pair and half a pair of surrogates
_AWKWARD = "a\u2028b\u2029c\u0085d\x0be\x00f\U0001f600g\r\nh"
_HALF = "\ud83d"
_NO_METHOD = -32601
_NULL_ID_CODES = {-32700, -32600}
_QUIET_SECONDS = 0.3
_SHORT_QUIET_SECONDS = 0.1
_HUGE = 12_000_000
_FLOOD_COMMAND = "head -c 24000000 /dev/zero | tr '\\0' x"
_LINE_LIMIT = 8 << 20
_ROUNDS = 40
_READ_FROM_LINE = 5


def awkward_text_makes_no_second_line(lab: Lab) -> None:
    """WIRE-01. The lines themselves are judged with the wire."""
    with lab.agent() as agent:
        session = agent.new_session()
        lab.model.script(said(_AWKWARD, "fine"))
        agent.prompt(session, _AWKWARD)
        half = {**prompt_frame("half", session, _HALF), "jsonrpc": "2.0"}
        # half a pair is no text: it may be refused
        agent.write((json.dumps(half) + "\n").encode())
        agent.response("half")
        agent.prompt(session, "still there?")


def a_chatty_tool_stays_off_stdout(lab: Lab) -> None:
    """WIRE-02."""
    with lab.agent(env={"PYTHONWARNINGS": "default"}) as agent:
        session = agent.new_session()
        turn = ran(lab, agent, session, shell("echo to-stdout; echo to-stderr >&2"), said("done"))
        turn.cards()
        require(not agent.noise, f"stdout holds what a tool printed: {agent.noise[:3]}")


def conversation(lab: Lab) -> None:
    """WIRE-03, WIRE-13, WIRE-14, WIRE-15: one of everything; the frames are judged with the wire."""
    path = str(lab.cwd / "notes.txt")
    with lab.agent() as agent:
        session = agent.new_session()
        ran(lab, agent, session, optional(shell("echo one")), said("two"))
        ran(lab, agent, session, optional(write_file(path, "text\n", call_id="call_write")), said("three"))
        ran(lab, agent, session, optional(read_file(path, call_id="call_read")), said("four"))
        agent.notify("_nobody/knows", {})
        agent.response(agent.request("nobody/knows"))
        agent.response(agent.request("session/new"))
        agent.response(agent.request("session/prompt", {"sessionId": "nobody", "prompt": []}))
        if agent.advertises("sessionCapabilities.list"):
            agent.response(agent.request("session/list"))
        if agent.advertises("loadSession"):
            load(lab, agent, session)
        agent.prompt(session)


def ids_come_back_unchanged(lab: Lab) -> None:
    """WIRE-04."""
    ids: list[Any] = ["a", 0, -1, "1", 1, ""]
    with lab.agent(initialize=False) as agent:
        for request_id in ids:
            first = request_id == ids[0]
            method, params = ("initialize", initialize_params()) if first else ("nobody/knows", {})
            agent.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        count = 0

        def are_all(frame: JsonObject) -> bool:
            nonlocal count
            count += "method" not in frame
            return count == len(ids)

        agent.wait(are_all, since=0, what=f"response to each of the ids {encode(ids)}")
        answered = Counter(encode(frame.get("id")) for frame in agent.frames if "method" not in frame)
        require(answered == Counter(map(encode, ids)), f"asked with the ids {encode(ids)}, answered {list(answered)}")


def each_request_is_answered_once(lab: Lab) -> None:
    """WIRE-05. Second answers are found with the wire."""
    with lab.agent() as agent:
        session = agent.new_session()
        for number in range(_ROUNDS):
            turn = begin(lab, agent, session, said("one ", "two ", "three"))
            time.sleep(0.0005 * (number % 20))  # each moment from before the first token until after the end
            turn.cancel()
            turn.end()
        agent.quiet(_SHORT_QUIET_SECONDS)


def notifications_are_not_answered(lab: Lab) -> None:
    """WIRE-06."""
    with lab.agent() as agent:
        agent.new_session()
        since = len(agent.entries)
        agent.notify("session/cancel", {"sessionId": "nobody"})
        agent.notify("foo/bar", {})
        agent.notify("_x/y", {"any": [1]})
        agent.send({"jsonrpc": "2.0", "method": "session/cancel", "params": 5})
        agent.send({"jsonrpc": "2.0", "method": "session/cancel"})
        request_id = agent.request("nobody/knows")
        agent.response(request_id)
        agent.quiet(_SHORT_QUIET_SECONDS)
        others = [frame for frame in _responses(agent, since) if frame.get("id") != request_id]
        require(not others, f"a notification was answered: {shown(others)}")
        agent.new_session()


def unknown_methods_are_errors(lab: Lab) -> None:
    """WIRE-07."""
    with lab.agent() as agent:
        for method in ("nobody/knows", "_vendor/x"):
            code = agent.error(method).get("code")
            if code != _NO_METHOD:
                lab.warn(f"{method} got the error {code}, not {_NO_METHOD}")


def garbage_does_not_end_the_connection(lab: Lab) -> None:
    """WIRE-08."""
    batch = encode([{"jsonrpc": "2.0", "method": "_x/y"}]).encode()
    garbage = [b'{"jsonrpc"', b'{"jsonrpc":"2.0","x":"\xff\xfe"}', b"\x1b[?25h", b"[]", batch, b"42", b"null"]
    with lab.agent() as agent:
        since = len(agent.entries)
        agent.write(b"\n".join([*garbage, b"", b"  ", b""]))
        agent.write(line({"id": "crlf", "method": "nobody/knows", "params": {}}).replace(b"\n", b"\r\n"))
        agent.response("crlf")
        agent.new_session()
        agent.quiet(_SHORT_QUIET_SECONDS)
        nameless = [frame for frame in _responses(agent, since) if frame.get("id") is None]
        for frame in nameless:
            code = (as_object(frame.get("error")) or {}).get("code")
            require(code in _NULL_ID_CODES, f"garbage was answered with {shown(frame)}")
        if len(nameless) != len(garbage):
            lab.warn(f"{len(garbage)} lines of garbage and 2 blank ones were answered {len(nameless)} times")


def answers_to_nothing_are_dropped(lab: Lab) -> None:
    """WIRE-09."""
    with lab.agent() as agent:
        agent.new_session()
        # whatever follows the opening of a session has come by then
        agent.quiet(_SHORT_QUIET_SECONDS)
        since = len(agent.entries)
        agent.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "what?"}})
        agent.send({"jsonrpc": "2.0", "id": 987, "result": {}})
        agent.quiet(_QUIET_SECONDS)
        # what comes of them has come with the next answer
        request_id = agent.request("nobody/knows")
        agent.response(request_id)
        answers = [frame for frame in _responses(agent, since) if frame.get("id") != request_id]
        require(not answers, f"a response was answered: {shown(answers)}")
        agent.new_session()


def missing_params_are_empty(lab: Lab) -> None:
    """WIRE-10."""
    with lab.agent() as agent:
        for request_id, params in (("without", {}), ("null", {"params": None})):
            agent.send({"jsonrpc": "2.0", "id": request_id, "method": "session/list", **params})
            frame = agent.response(request_id)
            require("result" in frame, f"session/list, params {request_id}: {shown(body_of(frame))}")


def size_and_cuts_do_not_matter(lab: Lab) -> None:
    """WIRE-11."""
    with lab.agent() as agent:
        session = agent.new_session()
        for byte in line(prompt_frame("bytes", session, "one by one")):
            agent.write(bytes([byte]))
        frame = agent.response("bytes")
        require("result" in frame, f"a prompt that was written byte by byte: {shown(body_of(frame))}")
        glued = [f"glued-{number}" for number in range(50)]
        agent.write(b"".join(line({"id": each, "method": "nobody/knows", "params": {}}) for each in glued))
        for each in glued:
            agent.response(each)
        frame = agent.prompt(session, "x" * _HUGE)
        code = (as_object(frame.get("error")) or {}).get("code")
        require(code not in _NULL_ID_CODES, f"a line of {_HUGE} bytes: {shown(body_of(frame))}")


def no_line_is_too_long(lab: Lab) -> None:
    """WIRE-12."""
    with lab.agent() as agent:
        session = agent.new_session()
        ran(lab, agent, session, shell(_FLOOD_COMMAND), said("done")).cards()
        _require_short_lines(agent, "a tool that prints 24 MB")
    if agent.advertises("loadSession"):
        with lab.agent() as second:
            load(lab, second, session)
            _require_short_lines(second, "loading that session")


def _require_short_lines(agent: LabAgent, when: str) -> None:
    longest = agent.longest_line()
    require(longest <= _LINE_LIMIT, f"{when}: a line of {longest} bytes; clients stop at 10 MiB")


def lines_count_from_one(lab: Lab) -> None:
    """WIRE-16."""
    path = lab.cwd / "lines.txt"
    path.write_text("".join(f"line {number}\n" for number in range(1, 21)))
    with lab.agent() as agent:
        session = agent.new_session()
        turn = ran(lab, agent, session, _read_from(str(path)), said("done"))
        locations = [
            as_object(row) or {} for update in turn.updates() for row in as_list(update.get("locations")) or []
        ]
        lines = {row["line"] for row in locations if row.get("line") is not None}
        provoked(lines, "no location of the read names a line")
        require(lines == {_READ_FROM_LINE}, f"read from line {_READ_FROM_LINE}, the locations say {sorted(lines)}")


def _read_from(path: str) -> MakeAnswer:
    def answer(body: JsonObject) -> Answer:
        tool = read_tool(body)
        key = tool and tool.key(("offset", "line", "start_line", "startLine"))
        path_key = tool and tool.key(("file_path", "path", "filePath", "filename", "file", "absolute_path"))
        if tool is None or key is None or path_key is None:
            return said(NO_TOOL)
        return tool.call({path_key: path, key: _READ_FROM_LINE}, call_id="call_read")

    return answer


def a_client_that_does_not_read_can_cancel(lab: Lab) -> None:
    """WIRE-17."""
    flood: list[JsonObject] = [{"text": ["y" * 4000] * 500}, {"gate": "behind the flood"}, {"done": True}]
    with lab.agent() as agent:
        session = agent.new_session()
        agent.pause_reading()
        since = len(agent.entries)
        lab.model.script({"stream": flood})
        agent.write(line(prompt_frame("flood", session, "go on")))
        request = lab.model.called()
        agent.quiet(_QUIET_SECONDS)
        agent.write(line(cancel_frame(session)))
        has_stopped = lab.model.left(request, seconds=lab.seconds / 2)
        agent.resume_reading()
        frame = agent.response("flood", since=since)
        require(stop_reason(frame) == "cancelled", f"cancelled while the client did not read: {shown(body_of(frame))}")
        if not has_stopped:
            raise Broken("the cancel had no effect until the client read on")


def _responses(agent: LabAgent, since: int) -> list[JsonObject]:
    entries = tuple(agent.entries)[since:]
    return [entry.frame for entry in entries if entry.sender == "agent" and "method" not in entry.frame]


CHECKS: dict[str, Check] = {
    "WIRE-01": awkward_text_makes_no_second_line,
    "WIRE-02": a_chatty_tool_stays_off_stdout,
    "WIRE-03": conversation,
    "WIRE-04": ids_come_back_unchanged,
    "WIRE-05": each_request_is_answered_once,
    "WIRE-06": notifications_are_not_answered,
    "WIRE-07": unknown_methods_are_errors,
    "WIRE-08": garbage_does_not_end_the_connection,
    "WIRE-09": answers_to_nothing_are_dropped,
    "WIRE-10": missing_params_are_empty,
    "WIRE-11": size_and_cuts_do_not_matter,
    "WIRE-12": no_line_is_too_long,
    "WIRE-13": conversation,
    "WIRE-14": conversation,
    "WIRE-15": conversation,
    "WIRE-16": lines_count_from_one,
    "WIRE-17": a_client_that_does_not_read_can_cancel,
}
"""Rule id → its check."""
