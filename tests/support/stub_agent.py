"""A tiny ACP agent for the tests of the harness: it does what the text of a prompt says. Standard library only.

`say X` · `ask` (a permission, then says the outcome) · `read` (a file of the client) · `hang` and `file` (say, or touch
`started`, then wait for the cancel) · `call X` (a model call: log and report) · `fail` · `garbage` · `tail` (half a
line) · `die` · `deaf` (does not exit) · `card` (a tool call that stays open). Started with `python stub_agent.py`.

With STUB_STRICT a model call has a fingerprint, and a replay checks it (`mute`: without saying which call it was).
"""

import hashlib
import json
import os
import signal
import sys
import time
import uuid

ROOT = os.environ.get("DSH_SNAPSHOT_SESSIONS_ROOT", ".")
logs: dict[str, list[dict]] = {}
state = {"deaf": False, "questions": 0, "answer": None}


def write(frame):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def read():
    line = sys.stdin.buffer.readline()
    if not line:
        while state["deaf"]:
            signal.pause()
        raise SystemExit(int(os.environ.get("STUB_EXIT", "0")))
    return json.loads(line)


def update(session, **fields):
    write({"method": "session/update", "params": {"sessionId": session, "update": fields}})


def say(session, text):
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def ask_client(method, params):
    state["questions"] += 1
    write({"id": state["questions"], "method": method, "params": params})
    return wait_for(lambda frame: "method" not in frame)


def wait_for(wanted):
    while not wanted(frame := read()):
        pass
    return frame


def wait_for_cancel():
    wait_for(lambda frame: frame.get("method") == "session/cancel")
    return "cancelled"


def model_call(session, text):
    log = logs[session]
    turn = sum(event["type"] == "turn/start" for event in log) + 1
    number = list(logs).index(session) + 1
    strict = os.environ.get("STUB_STRICT")
    fingerprint = hashlib.sha256(text.encode()).hexdigest()
    if strict and recorded_fingerprint(number, turn) not in {None, fingerprint}:
        where = "somewhere" if strict == "mute" else f"session {number} turn {turn} step 1"
        raise RuntimeError(f"fingerprint mismatch at {where}")
    header = ("request/header", {"turn": turn, "step": 1, "fingerprint": fingerprint})
    rows = [
        ("turn/start", {"turn": turn, "trigger": {"kind": "message", "source": {"kind": "user"}}}),
        *([header] if strict else []),
        ("assistant/chunk", {"turn": turn, "step": 1, "chunk": {"type": "text-delta", "index": 0, "text": text}}),
        ("assistant/chunk", {"turn": turn, "step": 1, "chunk": {"type": "finish", "reason": {"kind": "stop"}}}),
        ("turn/end", {"turn": turn, "reason": {"kind": "completed"}}),
    ]
    for kind, data in rows:
        log.append({"type": kind, "seq": len(log), "time": int(time.time() * 1000), "data": data})
    header = {"type": "session", "version": 1, "id": session, "createdAt": 5, "cwd": os.getcwd()}
    os.makedirs(os.path.join(ROOT, "bucket"), exist_ok=True)
    with open(os.path.join(ROOT, "bucket", session + ".jsonl"), "w") as file:
        file.writelines(json.dumps(record) + "\n" for record in [header, *log])
    if report := os.environ.get("DSH_SNAPSHOT_REPORT"):
        with open(report, "a") as file:
            file.write(json.dumps({"session": number, "turn": turn, "step": 1}) + "\n")


def recorded_fingerprint(number, turn):
    fixture = os.environ["DSH_SNAPSHOT_FILE"]
    path = fixture if number == 1 else fixture.replace(".jsonl", f".{number}.jsonl")
    if os.environ["DSH_SNAPSHOT"] == "replay" and os.path.exists(path):
        with open(path) as file:
            for row in map(json.loads, file):
                if row["type"] == "request/header" and row["data"]["turn"] == turn:
                    return row["data"]["fingerprint"]
    return None


def prompt(session, text):
    word, _, rest = text.partition(" ")
    if word == "say":
        say(session, rest)
    elif word == "ask":
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
        card = {"toolCallId": "t1", "title": "stub"}
        answer = ask_client("session/request_permission", {"sessionId": session, "toolCall": card, "options": options})
        say(session, json.dumps(answer.get("result", {}).get("outcome") or answer["error"]))
    elif word == "ask-and-go":
        options = [{"optionId": "allow_once", "name": "go", "kind": "allow_once"}]
        card = {"toolCallId": "t1", "title": "stub"}
        write(
            {
                "id": 77,
                "method": "session/request_permission",
                "params": {"sessionId": session, "toolCall": card, "options": options},
            }
        )
        say(session, "asked")
    elif word == "hear":
        answer = state["answer"] or wait_for(lambda frame: "method" not in frame)
        say(session, json.dumps(answer["result"]))
    elif word == "read":
        answer = ask_client("fs/read_text_file", {"sessionId": session, "path": os.path.abspath("x")})
        say(session, json.dumps(answer.get("result") or answer["error"]))
    elif word == "hang":
        say(session, "partial")
        return wait_for_cancel()
    elif word == "file":
        with open("started", "w"):
            pass
        return wait_for_cancel()
    elif word == "call":
        model_call(session, rest)
        say(session, rest)
    elif word == "card":
        update(session, sessionUpdate="tool_call", toolCallId="c1", title="stub", status="in_progress")
    elif word == "garbage":
        sys.stdout.write("this is a print\n")
    elif word == "nan":
        sys.stdout.write('{"jsonrpc":"2.0","method":"_x","params":{"v":NaN}}\n')
    elif word == "tail":
        sys.stdout.write('{"jsonrpc"')
        sys.stdout.flush()
        os._exit(0)
    elif word == "die":
        print("last words", file=sys.stderr, flush=True)
        os._exit(7)
    elif word == "deaf":
        state["deaf"] = True
    elif word == "fail":
        raise RuntimeError(rest)
    return "end_turn"


def handle(frame):
    method, params = frame["method"], frame.get("params", {})
    if method == "initialize":
        say_capabilities = {"loadSession": True, "sessionCapabilities": {"list": {}}}
        return {"protocolVersion": 1, "agentCapabilities": say_capabilities, "authMethods": []}
    if method == "session/new":
        if not os.path.isabs(params["cwd"]):
            raise RuntimeError("relative cwd")
        session = str(uuid.uuid4())
        logs[session] = []
        return {"sessionId": session}
    if method == "session/prompt":
        return {"stopReason": prompt(params["sessionId"], params["prompt"][0]["text"])}
    if method == "session/load":
        logs.setdefault(params["sessionId"], [])
        say(params["sessionId"], "loaded")
    if method == "session/list":
        return {"sessions": [{"sessionId": session, "cwd": os.getcwd()} for session in logs]}
    return {}


def main():
    while True:
        frame = read()
        if "method" not in frame:
            state["answer"] = frame
        if "id" not in frame or "method" not in frame:
            continue
        try:
            result = handle(frame)
        except RuntimeError as error:
            write({"id": frame["id"], "error": {"code": -32603, "message": str(error)}})
            continue
        write({"id": frame["id"], "result": result})
        if frame["method"] in {"session/new", "session/load"}:
            session = result.get("sessionId") or frame["params"]["sessionId"]
            update(session, sessionUpdate="available_commands_update", availableCommands=[])


if __name__ == "__main__":
    main()
