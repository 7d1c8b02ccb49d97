"""The client's own services, and the MCP server that the rules bring along."""

import json
import os
import subprocess
import sys

from acp_bridge.testing.conformance import mcp_echo
from acp_bridge.testing.conformance.mcp_echo import answer
from acp_bridge.testing.conformance.virtual_client import TERMINAL_TEXT, VirtualClient


def test_files_are_read_and_written_in_the_editor():
    client = VirtualClient(files={"/a": "text"})
    assert client({"method": "fs/read_text_file", "params": {"path": "/a"}}) == {"result": {"content": "text"}}
    assert client({"method": "fs/read_text_file", "params": {"path": "/b"}}) == {"result": {"content": ""}}
    assert client({"method": "fs/write_text_file", "params": {"path": "/b", "content": "new"}}) == {"result": None}
    assert client.files == {"/a": "text", "/b": "new"}
    assert client.made("fs/") == ["fs/read_text_file", "fs/read_text_file", "fs/write_text_file"]


def test_a_terminal_has_ended_when_it_is_asked():
    client = VirtualClient(empty={})
    assert client({"method": "terminal/create", "params": {"command": "ls"}}) == {
        "result": {"terminalId": "terminal-1"}
    }
    output = client({"method": "terminal/output", "params": {"terminalId": "terminal-1"}})
    assert output is not None
    assert output["result"]["output"] == TERMINAL_TEXT
    assert client({"method": "terminal/release", "params": {"terminalId": "terminal-1"}}) == {"result": {}}
    assert client.terminals("terminal/release") == ["terminal-1"]


def test_methods_can_fail_or_stay_silent():
    client = VirtualClient(silent=("a",), failing=("b",))
    assert client({"method": "a"}) is None
    assert client({"method": "b"}) == {"error": {"code": -32603, "message": "this client fails b"}}


def test_permissions_are_granted_and_forms_declined():
    client = VirtualClient()
    options = [{"kind": "allow_once", "optionId": "yes"}]
    granted = client({"method": "session/request_permission", "params": {"options": options}})
    assert granted == {"result": {"outcome": {"outcome": "selected", "optionId": "yes"}}}
    assert client({"method": "elicitation/create", "params": {}}) == {"result": {"action": "decline"}}


def test_the_echo_server_has_one_tool():
    assert answer({"method": "initialize"})["capabilities"] == {"tools": {}}
    assert answer({"method": "tools/list"})["tools"][0]["name"] == "echo"
    assert answer({"method": "tools/call"}) == {"content": [{"type": "text", "text": "echo"}]}
    assert answer({"method": "ping"}) == {}


def test_the_echo_server_writes_its_id_and_ends_with_its_input(tmp_path):
    frames = [{"id": 1, "method": "ping"}, {"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}]
    given = "".join(json.dumps(frame) + "\n" for frame in frames)
    command = [sys.executable, mcp_echo.__file__, str(tmp_path / "pids")]
    ended = subprocess.run(
        command, input=given, capture_output=True, text=True, check=True, timeout=60, cwd=os.getcwd()
    )
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [1, 2]
    assert (tmp_path / "pids").read_text(encoding="utf-8").strip().isdigit()
