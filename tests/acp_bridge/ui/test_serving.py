"""`dsh-acp-agent ui` in words: what it takes, what it says, when it opens a browser."""

import socket
import stat
import sys

import pytest

from acp_bridge.cli.parts import Streams
from acp_bridge.composition.page import serve_page
from acp_bridge.ui.arguments import Invocation, parse_arguments
from acp_bridge.ui.following import Sources
from acp_bridge.ui.serving import has_display, make_server, opening_page, run
from agent_loop.runtime import SystemRuntime
from tests.support.session_commands import CommandWorld, Stream, tools


def test_the_command_line_is_read():
    assert parse_arguments([]) == Invocation(0, opens=True, config=None)
    assert parse_arguments(["--port", "8000", "--no-open", "--config", "c"]) == Invocation(8000, False, "c")


@pytest.mark.parametrize("argv", [["--port", "x"], ["--port", "65536"], ["--port", "-1"], ["now"]])
def test_what_cannot_be_meant_ends_with_2(argv, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_arguments(argv)
    assert ended.value.code == 2
    assert "dsh-acp-agent ui" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "platform", "opens"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "darwin", True),
    ],
)
def test_a_browser_is_opened_where_one_can_be_seen(environment, platform, opens):
    assert has_display(environment, platform) is opens


def test_the_file_that_leads_to_the_page_is_private(tmp_path):
    page = opening_page(tmp_path, "http://127.0.0.1:1/t/")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "url=http://127.0.0.1:1/t/" in page.read_text()


def refused(world, *argv):
    out, err = Stream(), Stream()
    streams = Streams(out, err, Stream())
    code = run(
        argv,
        world.environment,
        streams,
        open_store=world.store,
        find_tool=tools().get,
        runtime=world.runtime,
        platform="linux",
    )
    assert (code, out.text) == (1, "")
    return err.text


def test_what_keeps_it_from_beginning_is_one_line(tmp_path):
    world = CommandWorld(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused(world, "--no-open", "--port", str(taken.getsockname()[1]))
    assert said.startswith("dsh-acp-agent ui: [Errno 98] Address already in use")
    assert said.endswith("; without --port it takes one that is free\n")
    broken = tmp_path / "broken.toml"
    broken.write_text("=")
    world.environment.pop("DSH_SNAPSHOT_SESSIONS_ROOT")
    said = refused(world, "--no-open", "--config", str(broken))
    assert said.startswith("dsh-acp-agent ui: ")
    assert said.count("\n") == 1


def test_without_its_libraries_the_command_names_what_to_install(monkeypatch):
    err = Stream()
    streams = Streams(Stream(), err, Stream())
    for name in ("acp_bridge.ui.serving", "acp_bridge.ui.application"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert serve_page([], {}, streams) == 1
    assert err.text == ("dsh-acp-agent ui needs the libraries of its page: install `dsh-acp-agent[ui]`\n")
    monkeypatch.setitem(sys.modules, "acp_bridge.ui.arguments", None)
    monkeypatch.setitem(sys.modules, "uvicorn", sys)
    with pytest.raises(ModuleNotFoundError, match=r"acp_bridge\.ui\.arguments"):
        serve_page([], {}, streams)


def test_the_server_listens_to_no_header_that_a_proxy_would_send_and_writes_no_address_down(tmp_path):
    world = CommandWorld(tmp_path)
    sources = Sources(world.store(tmp_path), lambda _id: None, tools().get, SystemRuntime())
    config = make_server(sources, token="t", port=1, home="").config
    assert (config.proxy_headers, config.access_log, config.server_header) == (False, False, False)
