import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from acp_bridge.testing.answers import Answers
from acp_bridge.testing.editor import Editor, EditorError
from tests.support.stub_scenario import STUB


@contextmanager
def editor_for(tmp_path: Path, *command: str, answers=None, seconds: float = 30.0) -> Iterator[Editor]:
    editor = Editor(
        command or STUB,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        stderr=tmp_path / "stderr",
        answers=Answers(answers or {}),
        seconds=seconds,
    )
    editor.start()
    try:
        yield editor
    finally:
        editor.kill()


def python(code: str) -> tuple[str, str, str]:
    return (sys.executable, "-S", "-c", code)


def any_frame(_frame) -> bool:
    return True


def test_requests_are_numbered_and_answered(tmp_path):
    with editor_for(tmp_path) as editor:
        assert editor.request("initialize", {}) == 1
        assert editor.response(1)["result"]["protocolVersion"] == 1
        assert editor.request("session/list", {}) == 2
        assert editor.response(2)["result"] == {"sessions": []}
        assert editor.stop() == 0
    assert editor.exits == [0]
    assert [entry.sender for entry in editor.entries] == ["client", "agent", "client", "agent"]
    assert bytes(editor.raw).count(b"\n") == 2


def test_numbers_go_on_over_a_restart(tmp_path):
    with editor_for(tmp_path) as editor:
        editor.response(editor.request("initialize", {}))
        editor.stop()
        editor.start()
        assert editor.request("initialize", {}) == 2
        assert editor.response(2)["result"]["protocolVersion"] == 1
        assert editor.stop() == 0
    assert editor.exits == [0, 0]


def test_a_command_that_cannot_run_is_named(tmp_path):
    with pytest.raises(EditorError, match=r"/no/such/agent: "), editor_for(tmp_path, "/no/such/agent"):
        pass


def test_a_wait_ends_with_the_agent(tmp_path):
    with editor_for(tmp_path, *python("import sys; sys.stdin.readline()")) as editor:
        request = editor.request("initialize", {})
        with pytest.raises(EditorError, match="the agent ended before its response to initialize"):
            editor.response(request)


def test_a_wait_ends_after_its_time(tmp_path):
    with editor_for(tmp_path) as editor, pytest.raises(EditorError, match=r"no frame within 0\.01 s"):
        editor.wait(any_frame, since=0, what="frame", seconds=0.01)


def test_a_wait_skips_frames_before_its_start(tmp_path):
    with editor_for(tmp_path) as editor:
        editor.response(editor.request("initialize", {}))
        since = len(editor.entries)
        editor.request("session/list", {})
        index, frame = editor.wait(any_frame, since=since, what="frame")
        assert (index, frame["result"]) == (3, {"sessions": []})


def test_an_agent_that_does_not_exit_is_reported_and_killed(tmp_path):
    ignoring = python('import time; print(\'{"jsonrpc":"2.0","method":"_up"}\', flush=True); time.sleep(600)')
    with editor_for(tmp_path, *ignoring, seconds=0.2) as editor:
        editor.wait(any_frame, since=0, what="start", seconds=30)
        with pytest.raises(EditorError, match=r"did not exit within 0\.2 s of the end of its input"):
            editor.stop()
        editor.kill()
        editor.kill()
    assert editor.exits == [-9]


def test_what_the_agent_left_in_its_group_is_killed_with_it(tmp_path):
    # the child holds stdout open; only its death lets the reader end
    leaving = python("import subprocess; subprocess.Popen(['sleep', '600'])")
    with editor_for(tmp_path, *leaving) as editor:
        assert editor.stop() == 0
        assert editor.failures == []


def test_stopping_what_does_not_run_is_an_error(tmp_path):
    with editor_for(tmp_path) as editor:
        editor.stop()
        with pytest.raises(EditorError, match="not running"):
            editor.stop()


def test_a_frame_for_an_agent_that_has_gone_is_dropped(tmp_path):
    with editor_for(tmp_path, *python("pass")) as editor:
        with pytest.raises(EditorError, match="ended"):
            editor.wait(any_frame, since=0, what="frame")
        editor.notify("session/cancel", {"pad": "x" * 200_000})
        assert editor.stop() == 0


@pytest.mark.parametrize("line", ["'a print'", "b'\\xff\\xfe'.decode('latin-1')", "'[]'", "'{\"v\":NaN}'"])
def test_a_line_that_is_no_json_object_is_a_failure(tmp_path, line):
    code = (
        f"import sys; sys.stdout.buffer.write({line}.encode('latin-1') + b'\\n'); sys.stdout.flush(); sys.stdin.read()"
    )
    with editor_for(tmp_path, *python(code)) as editor:
        with pytest.raises(EditorError, match="stdout holds a line that is no JSON object"):
            editor.wait(any_frame, since=0, what="frame")
        assert len(editor.failures) == 1


def test_half_a_line_at_the_end_is_a_failure(tmp_path):
    with editor_for(tmp_path, *python("import sys; sys.stdout.write('{\"json')")) as editor:
        editor.stop()
    assert editor.failures == ["stdout ends in the middle of a line: b'{\"json'"]


def test_silence_is_told_from_noise(tmp_path):
    with editor_for(tmp_path) as editor:
        editor.expect_quiet(0.01)
        editor.request("initialize", {})
        with pytest.raises(EditorError, match=r"expected quiet, got .*protocolVersion"):
            editor.expect_quiet(30)


def test_stderr_is_kept(tmp_path):
    with editor_for(tmp_path, *python("import sys; sys.stderr.write('last words')")) as editor:
        editor.stop()
    assert (tmp_path / "stderr").read_text() == "last words"
