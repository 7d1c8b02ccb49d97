"""Well-formed session logs, as hypothesis draws them: collisions and interleavings of everything that is shown."""

from typing import Any

from hypothesis import strategies as st

from agent_loop.session.events import SessionEvent, make_event

TEXTS = st.text(st.sampled_from("ab \n`é\u2028😀"), max_size=6)
SOURCES = st.sampled_from([{"kind": "user"}, {"kind": "plugin", "plugin": "loop"}])
ARGUMENTS = (
    '{"command": "ls", "description": "list"}',
    '{"task_id": "bash-1"}',
    '{"file_path": "a", "old_string": "b", "new_string": "c"}',
)
DIFFS = st.lists(
    st.fixed_dictionaries({"path": st.just("/p/a"), "oldText": st.none() | TEXTS, "newText": TEXTS}), max_size=2
)
CHANGES = st.fixed_dictionaries({"diffs": DIFFS}, optional={"line": st.integers(1, 9)})
PREVIEWS = st.fixed_dictionaries({}, optional={"preview": CHANGES})
OUTPUTS = st.text(st.sampled_from("xy\n\x1b[31m`"), max_size=20)


class LogBuilder:
    """Appends events with a running seq; knows which call ids were used."""

    def __init__(self) -> None:
        self.events: list[SessionEvent] = []
        self.calls = 0
        self.turn = 0

    def add(self, event_type: str, **data: Any) -> None:
        self.events.append(make_event(event_type, len(self.events), 0, data))


def _message(draw: st.DrawFn, log: LogBuilder) -> None:
    blocks = [{"type": "text", "text": draw(TEXTS) or "x"}]
    if draw(st.booleans()):
        blocks.append({"type": "resource-link", "uri": "file:///a", "name": "a"})
    log.add("user/message", content=blocks, source=draw(SOURCES))


def _call(draw: st.DrawFn, log: LogBuilder, step: int) -> None:
    log.calls += 1
    call = {"turn": log.turn, "step": step, "callId": f"call-{log.calls}"}
    name = draw(st.sampled_from(["bash", "bash_output", "edit", "gone"]))
    arguments = draw(st.sampled_from([*ARGUMENTS, "", "{", "[1]"]))
    asked = draw(st.booleans())
    if asked:
        log.add("permission/request", callId=call["callId"], digest="d", **draw(PREVIEWS))
    log.add("tool/call", **call, name=name, arguments=arguments)
    if asked and draw(st.booleans()):
        # what the call would do has changed while the question stood
        log.add("permission/decision", callId=call["callId"], digest="d", outcome="outdated", by="user")
        log.add("permission/request", callId=call["callId"], digest="d", **draw(PREVIEWS))
    allowed = True
    if asked:
        allowed = draw(st.booleans())
        log.add(
            "permission/decision",
            callId=call["callId"],
            digest="d",
            outcome="allow" if allowed else "reject",
            by="user",
        )
    result: dict[str, Any] = {"content": [{"type": "text", "text": draw(OUTPUTS)}], "isError": not allowed}
    if allowed and draw(st.booleans()):
        ends = draw(st.sampled_from([{"exitCode": 0}, {"exitCode": 3}, {"signal": "SIGTERM"}]))
        result["meta"] = {**ends, "output": draw(OUTPUTS), **draw(CHANGES)}
    log.add("tool/result", **call, **result)


def _step(draw: st.DrawFn, log: LogBuilder, step: int) -> None:
    log.add("step/start", turn=log.turn, step=step)
    for kind, text in draw(st.lists(st.tuples(st.sampled_from(["text", "reasoning"]), TEXTS), max_size=4)):
        chunk = {"type": f"{kind}-delta", "index": 0, "text": text}
        log.add("assistant/chunk", turn=log.turn, step=step, chunk=chunk)
    log.add("assistant/chunk", turn=log.turn, step=step, chunk={"type": "finish", "reason": {"kind": "stop"}})
    usage = {"usage": {"inputTokens": 3, "outputTokens": 4}} if draw(st.booleans()) else {}
    log.add("assistant/message", turn=log.turn, step=step, content=[], **usage)
    for _ in range(draw(st.integers(0, 2))):
        _call(draw, log, step)
    if draw(st.booleans()):
        _message(draw, log)
    log.add("step/end", turn=log.turn, step=step)


def _summary(draw: st.DrawFn, log: LogBuilder, step: int) -> None:
    """A step that writes a summary, or fails to."""
    log.add("step/start", turn=log.turn, step=step)
    call = {"model": "m", "provider": "p", "fingerprint": "f"}
    log.add("request/header", turn=log.turn, step=step, **call, purpose="compaction")
    for text in draw(st.lists(TEXTS, max_size=3)):
        chunk = {"type": "text-delta", "index": 0, "text": text}
        log.add("assistant/chunk", turn=log.turn, step=step, chunk=chunk)
    if draw(st.booleans()):
        usage = {"inputTokens": 3, "outputTokens": 4}
        log.add("assistant/message", turn=log.turn, step=step, content=[], usage=usage)
        log.add("history/compacted", fromSeq=0, toSeq=0, summary="s")
    log.add("step/end", turn=log.turn, step=step)


def _between(draw: st.DrawFn, log: LogBuilder) -> None:
    match draw(st.sampled_from(["", "command", "mode", "title", "notice", "plan", "unknown", "config"])):
        case "command":
            log.add("command/run", commandId="1", line="/help")
            log.add("command/done", commandId="1", ok=True, text=draw(TEXTS))
        case "mode":
            log.add("mode/change", modeId=draw(st.sampled_from(["full", "ask", "of another version"])))
        case "title":
            log.add("session/title", title="a title", by="user")
        case "notice":
            log.add("session/notice", severity="info", title="note", description="more")
        case "plan":
            log.add("plan/update", entries=[{"content": "x", "priority": "low", "status": "pending"}])
        case "unknown":
            log.add("from/later", anything=1)
        case "config":
            values = ["deepseek/deepseek-v4-pro", "off", "max", "gone/m"]
            option = draw(st.sampled_from(["model", "reasoning_effort", "of another version"]))
            log.add("config/change", configId=option, value=draw(st.sampled_from(values)))
        case _:
            pass


@st.composite
def session_logs(draw: st.DrawFn) -> list[SessionEvent]:
    """0–3 turns of 1–2 steps, with log-only events in and between them."""
    log = LogBuilder()
    for _ in range(draw(st.integers(0, 3))):
        _between(draw, log)
        log.turn += 1
        log.add("turn/start", turn=log.turn, trigger={"kind": "message", "source": {"kind": "user"}})
        _between(draw, log)
        _message(draw, log)
        for step in range(1, draw(st.integers(1, 2)) + 1):
            write = _summary if draw(st.integers(0, 5)) == 5 else _step
            write(draw, log, step)
        reason = draw(st.sampled_from(["completed", "completed", "refusal", "aborted"]))
        log.add("turn/end", turn=log.turn, reason={"kind": reason})
    _between(draw, log)
    return log.events
