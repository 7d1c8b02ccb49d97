"""What the commands read from and write to."""

import sys

from acp_bridge.cli.parts import Streams
from tests.support.session_commands import CommandWorld, Stream


def test_a_closed_stream_leads_nowhere_and_an_odd_locale_writes_what_it_can(monkeypatch):
    out = Stream()
    out.reconfigure(encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdin", None)
    streams = Streams.standard()
    streams.tell("a│b\x1b")
    streams.say("nobody hears it")
    assert out.memory.getvalue() == b"a\\u2502b\\u241b\n"
    assert not streams.source.isatty()
    assert streams.source.readline() == ""
    streams.err.close()
    streams.source.close()


def test_no_home_directory_shortens_nothing(tmp_path):
    world = CommandWorld(tmp_path, {"HOME": ""})
    world.write("s", [("command/run", {"commandId": "1", "line": "/x"})], cwd="/home/me")
    assert " /home/me " in world.run("list").out
