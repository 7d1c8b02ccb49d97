"""A command's result as the model and people read it (contract tools-and-bash.md §2)."""

import pytest

from agent_loop.tools.bash_text import (
    completion_text,
    fenced_console,
    killed_text,
    model_text,
    output_meta,
    result_meta,
    started_text,
    task_meta,
    task_output_text,
    tasks_text,
)
from bash_exec.seam import BackgroundTask, CommandResult, StreamCapture, Survivor, TaskOutput


def result(stdout="", stderr="", exit_code=0, **facts):
    given = {"signal": None, "timed_out": False, "aborted": False, "timeout_ms": 120_000, **facts}
    streams = [text if isinstance(text, StreamCapture) else StreamCapture(text) for text in (stdout, stderr)]
    return CommandResult(exit_code, stdout=streams[0], stderr=streams[1], **given)


def task(status="running", **facts):
    return BackgroundTask("bash-1", "s1", "npm  run\nbuild", status, **facts)


def test_stdout_alone_is_given_as_it_is():
    assert model_text(result("SNAPSHOT_OK\n")) == "SNAPSHOT_OK\n"


def test_stderr_stands_in_its_own_section():
    assert model_text(result("out\n", "err\n")) == "out\n[stderr]\nerr\n"
    assert model_text(result("out", "err")) == "out\n[stderr]\nerr"
    assert model_text(result(stderr="err\n")) == "[stderr]\nerr\n"


def test_silence_is_said():
    assert model_text(result()) == "(no output)"
    assert model_text(result(exit_code=1)) == "(no output)\n[exit code: 1]"


def test_truncation_names_numbers_and_the_whole_output():
    cut = StreamCapture("head\ntail\n", truncated=True, dropped_bytes=900, dropped_lines=12, spill_path="/spill/x")
    assert model_text(result(cut)) == (
        "head\ntail\n[output truncated: 900 bytes, 12 lines dropped; full output: /spill/x]"
    )
    lost = StreamCapture("e", truncated=True, dropped_bytes=1, dropped_lines=0)
    assert model_text(result("o", lost)) == "o\n[stderr]\ne\n[output truncated: 1 bytes, 0 lines dropped]"


def test_binary_output_is_noted():
    assert model_text(result(StreamCapture("\ufffd", binary=True))) == "\ufffd\n[binary data in the output]"


def test_a_non_zero_exit_is_told_on_its_own_line():
    assert model_text(result("out", exit_code=2)) == "out\n[exit code: 2]"


def test_a_timeout_is_told_whichever_way_the_command_ended():
    killed = result("x\n", exit_code=None, signal="SIGTERM", timed_out=True, timeout_ms=2000)
    assert model_text(killed) == "x\n[timed out after 2000ms]\n[killed by signal: SIGTERM]"
    clean = result("x\n", exit_code=0, timed_out=True, timeout_ms=2000)
    assert model_text(clean) == "x\n[timed out after 2000ms]"


def test_the_output_limit_is_told():
    stopped = result("y\n", exit_code=None, signal="SIGKILL", output_limit=1 << 30)
    assert model_text(stopped) == "y\n[stopped at the output limit of 1073741824 bytes]\n[killed by signal: SIGKILL]"


def test_an_abort_is_told():
    stopped = result(exit_code=None, signal="SIGTERM", aborted=True)
    assert model_text(stopped) == "(no output)\n[aborted]\n[killed by signal: SIGTERM]"


def test_processes_that_live_on_are_named():
    alive = result(
        "done\n", survivors=(Survivor(7, "stuck"),), background=(Survivor(8, "sleep 60"), Survivor(9, "x" * 200))
    )
    assert model_text(alive) == (
        f"done\n[1 processes survived: 7 (stuck)]\n[still running in background: 8 (sleep 60), 9 ({'x' * 80}…)]"
    )


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("sudo: a terminal is required to read the password", "sudo cannot ask"),
        ("sudo: a password is required", "sudo cannot ask"),
        ("fatal: could not read Username for 'https://x': terminal prompts disabled", "git cannot ask"),
        ("Host key verification failed.", "ssh runs in batch mode"),
        ("me@host: Permission denied (publickey,password).", "ssh runs in batch mode"),
        ("EOFError: EOF when reading a line", "pass the answers as arguments"),
        ("error: stdin is not a terminal", "pass the answers as arguments"),
        ("bash: line 1: /dev/tty: No such device or address", "pass the answers as arguments"),
        ("gpg: cannot open '/dev/tty': No such device or address", "pass the answers as arguments"),
        ("Error opening terminal: dumb.", "pass the answers as arguments"),
        ("Do you want to continue? [Y/n] Abort.", "add -y"),
    ],
)
def test_a_prompt_that_nobody_can_answer_gets_a_hint(message, hint):
    for given in (result(stderr=message, exit_code=1), result(message, exit_code=1)):
        last = model_text(given).splitlines()[-1]
        assert last.startswith("[hint: ")
        assert hint in last


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        ("read x", 1),
        ("cd /tmp && read -p 'Continue? ' x", 1),
        ("if read x; then true; fi", 0),
        ("cat", 0),
        ("cat > f", 0),
    ],
)
def test_a_silent_command_that_waited_for_input_gets_a_hint(command, exit_code):
    text = model_text(result(exit_code=exit_code), command=command)
    assert text.startswith("(no output)\n")
    assert "[hint: commands have no terminal and no standard input" in text


@pytest.mark.parametrize(
    "command", ["cat file", "cat > f <<'E'\nx\nE", "true | cat", "read x < file", "spread x", "grep read f", "false"]
)
def test_a_silent_command_with_input_of_its_own_gets_no_hint(command):
    assert "hint" not in model_text(result(exit_code=1), command=command)


def test_a_successful_command_gets_no_hint():
    assert model_text(result("sudo: a password is required\n")) == "sudo: a password is required\n"


def test_meta_holds_what_is_true_and_nothing_else():
    assert result_meta(result("x"), "x") == {"exitCode": 0, "output": "x"}
    assert result_meta(result(exit_code=None, signal="SIGKILL"), "") == {"signal": "SIGKILL", "output": ""}


def test_meta_holds_every_fact():
    cut = StreamCapture("", truncated=True, dropped_bytes=9, dropped_lines=1, spill_path="/spill/x")
    everything = result(
        cut,
        cut,
        exit_code=None,
        signal="SIGTERM",
        timed_out=True,
        aborted=True,
        output_limit=10,
        survivors=(Survivor(7, "a"),),
        background=(Survivor(8, "b"),),
    )
    assert result_meta(everything, "shown", output_dropped=5) == {
        "signal": "SIGTERM",
        "timedOut": True,
        "aborted": True,
        "outputLimit": 10,
        "truncated": True,
        "spillPaths": ["/spill/x", "/spill/x"],
        "survivors": [7],
        "background": [8],
        "outputDropped": 5,
        "output": "shown",
    }


def test_what_is_new_of_a_background_command_ends_with_its_status():
    assert task_output_text(TaskOutput("line\n", "running", None, None)) == "line\n[status: running]"
    assert task_output_text(TaskOutput("", "exited", 3, None)) == "(no new output)\n[status: exited, exit code: 3]"


def test_lost_output_of_a_background_command_is_told():
    lost = TaskOutput("tail\n", "killed", None, "SIGTERM", lost_bytes=99, spill_path="/spill/x")
    assert task_output_text(lost) == ("tail\n[99 bytes lost; full output: /spill/x]\n[status: killed, signal: SIGTERM]")
    assert "[99 bytes lost]" in task_output_text(TaskOutput("", "running", None, None, lost_bytes=99))


def test_the_sentences_about_a_background_command_name_it():
    assert "bash-1" in started_text(task())
    assert killed_text(task("killed", signal="SIGTERM")) == "bash-1 has ended [status: killed, signal: SIGTERM]"
    assert completion_text(task("exited", exit_code=0)).startswith(
        "background command bash-1 (npm run build) has ended: exited, exit code: 0"
    )


def test_output_meta_says_which_bytes_were_read_and_how_many_are_gone():
    read = TaskOutput("tail\n", "running", None, None, offset=10, next_offset=15)
    assert output_meta(read) == {"status": "running", "offset": 10, "nextOffset": 15}
    lossy = TaskOutput("tail\n", "exited", 0, None, 99, offset=99, next_offset=104)
    assert output_meta(lossy) == {"status": "exited", "exitCode": 0, "offset": 99, "nextOffset": 104, "lost": 99}


def test_the_tasks_of_a_session_are_listed_with_how_they_stand():
    assert tasks_text([]) == "it has none"
    assert tasks_text([task(), task("killed", signal="SIGTERM")]) == (
        "it has:\nbash-1 [status: running] npm run build\nbash-1 [status: killed, signal: SIGTERM] npm run build"
    )


def test_task_meta_holds_the_status_and_how_it_ended():
    assert task_meta(task()) == {"status": "running"}
    assert task_meta(task("exited", exit_code=0)) == {"status": "exited", "exitCode": 0}
    assert task_meta(TaskOutput("", "killed", None, "SIGKILL")) == {"status": "killed", "signal": "SIGKILL"}


def test_console_text_is_fenced():
    assert fenced_console("SNAPSHOT_OK\n") == "```console\nSNAPSHOT_OK\n```"
    assert fenced_console("no newline") == "```console\nno newline\n```"


def test_the_fence_is_longer_than_any_run_of_backticks_inside():
    assert fenced_console("a ```` b") == "`````console\na ```` b\n`````"
