"""The package `mcp` is loaded without its server half, and whole where it cannot do without."""

import importlib
import sys

import pytest

from agent_loop.mcp.client_half import load_client_half

NAMES_ONLY = """
from mcp.server import Server
from mcp.server.session import ServerSession
Either = Server[int] | ServerSession
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package `mcp` that is found before the real one."""
    for name in [name for name in sys.modules if name == "mcp" or name.startswith("mcp.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mcp" / "server").mkdir(parents=True)
    (tmp_path / "mcp" / "server" / "session.py").write_text("class ServerSession: ...\n")
    (tmp_path / "mcp" / "server" / "__init__.py").write_text("class Server:\n    kind = 'real'\n")

    def write(text):
        (tmp_path / "mcp" / "__init__.py").write_text(text)

    yield write
    for name in loaded():
        del sys.modules[name]


def loaded():
    return sorted(name for name in sys.modules if name == "mcp" or name.startswith("mcp."))


def test_what_only_names_the_server_half_is_loaded_without_it(package):
    package(NAMES_ONLY)
    before = list(sys.meta_path)
    load_client_half()
    assert loaded() == ["mcp"]
    assert sys.meta_path == before
    assert importlib.import_module("mcp.server").Server.kind == "real"


@pytest.mark.parametrize("use", ["from mcp.server import Server\nServer.kind", "import mcp.server\nmcp.server.A + 1"])
def test_what_uses_the_server_half_is_left_to_be_loaded_whole(package, use):
    package(use)
    load_client_half()
    assert loaded() == []


def test_a_package_that_is_there_stays_as_it_is(package):
    package("")
    there = importlib.import_module("mcp")
    load_client_half()
    assert importlib.import_module("mcp") is there
