"""An agent for the tests of the benchmark: it streams what a prompt asks for, without a model. Standard library only.

Words after its name are faults: `end` (at a prompt) · `hang` · `error` · `few` (a delta too few) · `joined` (all deltas
in one frame) · `deaf` (ends at neither EOF nor SIGTERM, and has a child; its pid is in the file `child`) · `poor`
(offers nothing) · `scattered` (a session is two files) · `forgetful` (lists no clones) · `long` (a line has no end).
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

FAULTS = set(sys.argv[1:])
HOME = Path(os.environ.get("HOME", "."))
PAGE = 2


def bench_agent(*faults):
    """The command that starts it. Without `site` nothing measures it: it is no part of the product."""
    return (sys.executable, "-S", __file__, *faults)


def write(**frame):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}, separators=(",", ":")) + "\n")


def say(session, text):
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    write(method="session/update", params={"sessionId": session, "update": update})


def stream(session, text):
    asked = dict(re.findall(r"(\w+)=(\d+)", text.rpartition("@bench")[2]))
    n, paced = int(asked.get("n", 1)) - ("few" in FAULTS), asked.get("rate", "0") != "0"
    deltas = [f"@{time.monotonic_ns():x}|~" if paced else f"{number:05d}~" for number in range(n)]
    for delta in ["".join(deltas)] if "joined" in FAULTS else deltas:
        say(session, delta)
    for name in (f"{session}.log", *([f"{session}.more"] if "scattered" in FAULTS else [])):
        (HOME / name).write_text(f"{session} {n}\n" + "x" * 10_000 + f"\n{session}\n")


def answer(method, params):
    if method == "initialize":
        offered = {} if "poor" in FAULTS else {"loadSession": True, "sessionCapabilities": {"list": {}}}
        return {"protocolVersion": 1, "agentCapabilities": offered}
    if method == "session/new":
        return {"sessionId": str(uuid.uuid4())}
    if method == "session/prompt":
        stream(params["sessionId"], params["prompt"][0]["text"])
        return {"stopReason": "end_turn"}
    if method == "session/load":
        for _ in range(int((HOME / f"{params['sessionId']}.log").read_text().split()[1])):
            say(params["sessionId"], "loaded~")
        return {}
    logs = sorted(HOME.glob("*.log"))[: 1 if "forgetful" in FAULTS else None]
    begin = int(params.get("cursor", 0))
    rows = [log.read_bytes().split()[0].decode() for log in logs[begin : begin + PAGE]]
    # a clone has its own id, at both ends
    assert rows == [log.stem for log in logs[begin : begin + PAGE]]
    more = {"nextCursor": str(begin + PAGE)} if begin + PAGE < len(logs) else {}
    return {"sessions": [{"sessionId": row} for row in rows], **more}


def main():
    if "deaf" in FAULTS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        (HOME / "child").write_text(str(child.pid))
    if "long" in FAULTS:
        sys.stdout.write("x" * (70 << 20))
    for line in sys.stdin:
        frame = json.loads(line)
        if "id" in frame and "method" in frame:
            if frame["method"] == "session/prompt" and "end" in FAULTS:
                sys.exit("last words")
            if frame["method"] == "session/prompt" and "hang" in FAULTS:
                continue
            if frame["method"] == "session/prompt" and "error" in FAULTS:
                write(id=frame["id"], error={"code": -32603, "message": "no, for /a/reason"})
            else:
                write(id=frame["id"], result=answer(frame["method"], frame["params"]))
            sys.stdout.flush()
    while "deaf" in FAULTS:
        signal.pause()


if __name__ == "__main__":
    main()
