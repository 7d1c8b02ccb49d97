"""`dsh-acp-agent sessions` as a person runs it: the installed command, a terminal, a pipe that closes."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess

from agent_loop.session.events import SessionHeader
from agent_loop.session.layout import log_path
from tests.support.agent_process import LIMIT, agent_home
from tests.support.official import agent_command
from tests.support.session_commands import log_bytes
from tests.support.session_turns import call, result, step_end, step_start, text_turn, turn_end, turn_start, user

ID = "5b6d0a3e-4f0f-4f57-9f0e-2f5a1b6c7d8e"
SGR = re.compile(rb"\x1b\[[0-9;]*m")


def command(*argv):
    return [*agent_command(), "sessions", *argv]


def read_until(terminal, wanted):
    """What comes out of a terminal until `wanted` stands in it; None: until its end."""
    seen = b""
    while wanted is None or wanted not in seen:
        assert select.select([terminal], [], [], LIMIT)[0], seen
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        seen += piece
    return seen


def press_ctrl_c(process):
    """Until it is heard: what comes between the question and the wait for its answer is heard with the next key."""
    for _ in range(60):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
            return
    process.kill()


def stored(home, pairs):
    path = log_path(home.sessions, ID, home.cwd)
    path.parent.mkdir(parents=True)
    path.write_bytes(log_bytes(SessionHeader(ID, 1, cwd=home.cwd), pairs))
    return path


def test_a_session_is_shown_in_colour_on_a_terminal_and_a_question_ends_with_ctrl_c(tmp_path):
    home = agent_home(tmp_path, key=None, TERM="xterm-256color")
    shown = result(1, 1, "c", "\x1b[31mred\x1b[0m\x1b[2J\x1b]0;title\x07")
    shown[1]["meta"] = {"output": shown[1]["content"][0]["text"], "exitCode": 0}
    ran = [turn_start(1), user("Print it in red"), step_start(1, 1), call(1, 1, "c"), shown, step_end(1, 1)]
    log = stored(home, [*ran, turn_end(1), *text_turn(2, reply="**It is red.**")])
    controller, terminal = pty.openpty()
    options = {"env": home.env, "stdin": terminal, "stdout": terminal, "stderr": terminal, "start_new_session": True}
    with subprocess.Popen(command("show", ID[:8]), **options) as process:
        seen = read_until(controller, b"\x1b[1mIt is red.\x1b[0m")
    assert process.returncode == 0
    assert b"\x1b[31mred\x1b[0m" in seen
    assert b"\x1b" not in SGR.sub(b"", seen)
    with subprocess.Popen(command("delete", ID), **options) as process:
        read_until(controller, b"[y/N] ")
        press_ctrl_c(process)
        os.close(terminal)
        rest = read_until(controller, None)
    os.close(controller)
    assert process.returncode == 130
    assert b"Traceback" not in rest
    assert log.exists()


def test_a_reader_that_has_seen_enough_ends_it_quietly(tmp_path):
    home = agent_home(tmp_path, key=None)
    stored(home, text_turn(1, "line\n" * 40_000))
    with subprocess.Popen(
        command("show", ID), env=home.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as shown:
        assert shown.stdout.readline() == b"untitled session\n"
        shown.stdout.close()
        assert shown.stderr.read() == b""
    assert shown.returncode == 0
