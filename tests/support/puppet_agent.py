"""An ACP agent with next to nothing, whose handlers a test replaces: `python puppet_agent.py 'CODE'`. Standard library.

CODE sees `on` (method → handler of the request or notification frame), `write`, `reply`, `fail`, `update`, `read`.
"""

import json
import sys
import uuid


def write(frame):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def reply(request, result):
    write({"id": request["id"], "result": result})


def fail(request, code, **fields):
    write({"id": request["id"], "error": {"code": code, "message": "no", **fields}})


def update(session, kind, **fields):
    write({"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}})


def read():
    line = sys.stdin.buffer.readline()
    if not line:
        raise SystemExit(0)
    try:
        return json.loads(line)
    except ValueError:
        return {}


on = {
    "initialize": lambda request: reply(request, {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}),
    "session/new": lambda request: reply(request, {"sessionId": str(uuid.uuid4())}),
    "session/prompt": lambda request: reply(request, {"stopReason": "end_turn"}),
}


def advertise(**capabilities):
    on["initialize"] = lambda request: reply(request, {"protocolVersion": 1, "agentCapabilities": capabilities})


if __name__ == "__main__":
    exec(sys.argv[1] if len(sys.argv) > 1 else "", globals())  # noqa: S102 - the test says what the agent does
    while True:
        frame = read()
        if not isinstance(frame, dict) or "method" not in frame:
            continue
        if frame["method"] in on:
            on[frame["method"]](frame)
        elif "id" in frame:
            fail(frame, -32601)
