"""A tiny MCP server over stdio with one tool, `echo`, for the rules about MCP: `python mcp_echo.py PID_FILE`.

May not know: anything of this package, so that any Python can run it as a file. Invariant: its process id stands in
PID_FILE before it reads anything; it ends at the end of its input.
"""

import json
import os
import sys

_TOOL = {
    "name": "echo",
    "description": "Say it again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def answer(frame: dict[str, object]) -> dict[str, object]:
    """The result of a request."""
    method = frame.get("method")
    if method == "initialize":
        server = {"name": "echo", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [_TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "echo"}]}
    return {}


def main() -> None:
    """Serve until the end of the input."""
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        frame = json.loads(line)
        if "id" in frame:
            response = {"jsonrpc": "2.0", "id": frame["id"], "result": answer(frame)}
            sys.stdout.write(json.dumps(response) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
