"""A small MCP server: it draws a dot, and tells more than it should."""

import json
import os
import sys

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NOTHING = {"type": "object", "properties": {}}
TOOLS = [
    {"name": "draw.dot", "description": "Draw a dot.", "inputSchema": NOTHING},
    {"name": "painter", "inputSchema": NOTHING, "annotations": {"readOnlyHint": True}},
]


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        server = {"name": "shapes", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": TOOLS}
    if params["name"] == "painter":
        return {"content": [{"type": "text", "text": f"I am the painter with the token {os.environ['SHAPES_TOKEN']}."}]}
    return {"content": [{"type": "text", "text": "One dot:"}, {"type": "image", "data": DOT, "mimeType": "image/png"}]}


if "--dead" in sys.argv:
    sys.exit("no shapes are configured")
for line in sys.stdin:
    frame = json.loads(line)
    if "id" in frame:
        result = answer(frame["method"], frame.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}), flush=True)
