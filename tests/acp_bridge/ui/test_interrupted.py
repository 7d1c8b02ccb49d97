"""Ctrl-C before the page is served."""

import io
import sys

from acp_bridge.main import INTERRUPTED, show_page


class Interrupting(io.TextIOWrapper):
    """A person presses Ctrl-C while the first line is being written."""

    def write(self, _text):
        raise KeyboardInterrupt


def test_ctrl_c_ends_the_command_with_its_exit_code_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DSH_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").touch()
    monkeypatch.setenv("DSH_SNAPSHOT_SESSIONS_ROOT", str(tmp_path / "sessions"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys, "stdout", Interrupting(io.BytesIO()))
    assert show_page(["--no-open"]) == INTERRUPTED
    assert capsys.readouterr().err == ""
