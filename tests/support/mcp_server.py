"""An MCP server over stdio that does what a test says: `python mcp_server.py BEHAVIOUR`.

Standard library only, so that it starts at once. What a test waits for it writes into named pipes in its directory.
"""

import json
import os
import signal
import subprocess
import sys

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PIDS = [os.getpid()]
BEHAVIOUR = sys.argv[1] if len(sys.argv) > 1 else ""
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "say", "description": "Say it again.", "inputSchema": TEXT, "annotations": {"readOnlyHint": True}},
    {"name": "draw", "inputSchema": {}},
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "refuse", "inputSchema": {"type": "object"}},
    {"name": "wait", "inputSchema": {"type": "object"}},
    {"name": "grow", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "secret", "inputSchema": {"type": "object"}},
    {"name": "odd", "inputSchema": {"type": "object"}},
    {"name": "empty", "inputSchema": {"type": "object"}},
    {"name": "pids", "inputSchema": {"type": "object"}},
    {"name": "roots", "inputSchema": {"type": "object"}},
    {"description": "no name"},
]


def tell(pipe, word):
    """Write into a named pipe that a test reads."""
    with open(pipe, "w", encoding="utf-8") as file:
        file.write(word)


def send(frame):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def result(number, value):
    send({"id": number, "result": {**value, **({"resultType": "complete"} if BEHAVIOUR == "modern" else {})}})


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def call(number, name, arguments):
    if name == "say":
        result(number, text(arguments["text"]))
    elif name == "draw":
        content = [{"type": "text", "text": "a dot"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}]
        result(number, {"content": content})
    elif name == "fail":
        result(number, text("it did not work", isError=True))
    elif name == "refuse":
        send({"id": number, "error": {"code": -32602, "message": "no such thing"}})
    elif name == "grow":
        TOOLS.append({"name": "later", "inputSchema": {"type": "object"}})
        TOOLS[0] = {**TOOLS[0], "description": "Say it once more."}
        send({"method": "notifications/resources/list_changed"})
        send({"method": "notifications/tools/list_changed"})
        result(number, text("grown"))
    elif name == "die":
        sys.stderr.write("I cannot go on\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "secret":
        result(number, text(f"it is {os.environ['TEST_SECRET']}"))
    elif name == "odd":
        result(number, {"content": [{"type": "riddle"}], "structuredContent": [1]})
    elif name == "empty":
        result(number, {})
    elif name == "pids":
        result(number, text(" ".join(map(str, PIDS))))
    elif name == "roots":
        send({"id": "r", "method": "roots/list"})
        answer = json.loads(sys.stdin.readline())
        result(number, text(answer["result"]["roots"][0]["uri"]))
    elif name == "later":
        result(number, {"content": [], "structuredContent": {"here": True}})
    elif name == "wait":
        tell("waiting", "now")


LISTED = []


def list_tools(number, cursor, more):
    """The list in two pages; what a second list gives depends on the behaviour."""
    LISTED.append(cursor)
    if BEHAVIOUR in {"toolless", "listless"}:
        send({"id": number, "error": {"code": -32601 if BEHAVIOUR == "toolless" else -32000, "message": "no list"}})
    elif BEHAVIOUR == "wrong":
        result(number, {"tools": [], "nextCursor": 5})
    elif BEHAVIOUR == "fickle" and LISTED.count(None) > 1:
        send({"id": number, "error": {"code": -32000, "message": "not now"}})
    elif BEHAVIOUR == "slow" and LISTED.count(None) > 1:
        tell("waiting", "now")
        with open("go", encoding="utf-8") as file:
            file.read()
        result(number, {"tools": TOOLS})
    elif cursor is None:
        result(number, {"tools": TOOLS[:2], "nextCursor": "2", **more})
    else:
        result(number, {"tools": TOOLS[2:], **({"nextCursor": "2"} if BEHAVIOUR == "endless" else {}), **more})


def answer(frame, behaviour=BEHAVIOUR):
    method, number, params = frame.get("method"), frame.get("id"), frame.get("params") or {}
    if method == "initialize":
        if behaviour == "modern":
            send({"id": number, "error": {"code": -32601, "message": "Method not found"}})
        elif behaviour != "silent":
            server = {"name": "test", "version": "1"}
            version = "1900-01-01" if behaviour == "old" else "2025-06-18"
            capabilities = {"tools": {"listChanged": True}}
            result(number, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": server})
    elif method == "server/discover":
        result(
            number,
            {
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"},
                "ttlMs": 0,
                "cacheScope": "private",
            },
        )
    elif method == "tools/list":
        list_tools(number, params.get("cursor"), MODERN.get(behaviour, {}))
    elif method == "tools/call":
        call(number, params["name"], params["arguments"])
    elif method == "notifications/cancelled":
        tell("cancelled", json.dumps(params))


MODERN = {"modern": {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}


def main(behaviour=BEHAVIOUR):
    if behaviour == "dead":
        sys.stderr.write("no configuration here\n")
        sys.exit(7)
    if behaviour == "noisy":
        print("Starting up … {not json}\n\n[1,2", flush=True)
    if behaviour == "family":
        child = subprocess.Popen(["sleep", "4717"], start_new_session=True)
        PIDS.append(child.pid)
    if behaviour == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        tell("deaf", str(os.getpid()))
        while True:
            signal.pause()
    for line in sys.stdin:
        answer(json.loads(line))


if __name__ == "__main__":
    main()
