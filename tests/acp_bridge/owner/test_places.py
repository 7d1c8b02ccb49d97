"""Where the socket lies."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from acp_bridge.owner.places import directories, is_own_peer, is_private, is_running, socket_path, sweep


def ended_pid():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_the_runtime_directory_comes_first_when_there_is_one():
    state, temporary = Path("/state"), Path("/tmp")
    rest = (Path("/state/run"), Path(f"/tmp/dsh-acp-agent-{os.geteuid()}"))
    assert directories({"XDG_RUNTIME_DIR": "/run/user/1"}, state, temporary) == (
        Path("/run/user/1/dsh-acp-agent"),
        *rest,
    )
    assert directories({"XDG_RUNTIME_DIR": "relative"}, state, temporary) == rest
    assert directories({}, state, temporary) == rest


def test_the_first_private_directory_with_room_for_a_name_is_taken(folder):
    for name in ("open", "own"):
        (folder / name).mkdir()
        (folder / name).chmod(0o755 if name == "open" else 0o700)
    (folder / "link").symlink_to(folder / "own")
    (folder / "file").touch()
    places = [folder / ("l" * 100), folder / "open", folder / "link", folder / "file" / "in", folder / "made"]
    path = socket_path(places, "ab")
    assert path == folder / "made" / f"{os.getpid()}-ab.sock"
    assert is_private(path.parent)
    with pytest.raises(OSError, match="no private directory"):
        socket_path(places[:4], "ab")


def test_what_processes_left_that_have_ended_is_swept_away(folder):
    gone, here, other = f"{ended_pid()}-ab.sock", f"{os.getpid()}-ab.sock", "note.txt"
    for name in (gone, here, other):
        (folder / name).touch()
    sweep(folder)
    assert sorted(os.listdir(folder)) == sorted((here, other))


def test_only_a_living_process_of_this_user_runs():
    assert is_running(os.getpid())
    assert not is_running(ended_pid())
    assert not is_running(10**30)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_and_a_peer_of_another_user_are_not_ours():
    code = (
        "import os, socket; from acp_bridge.owner.places import is_own_peer, is_running\n"
        "ours, theirs = socket.socketpair(); os.setuid(12345)\n"
        "print(is_running(os.getppid()), is_own_peer(ours))"
    )
    assert subprocess.check_output([sys.executable, "-c", code]) == b"False False\n"


def test_the_peer_is_this_user_where_the_kernel_tells_and_where_the_directory_has_seen_to_it():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert is_own_peer(ours)
        assert is_own_peer(ours, option=None)
