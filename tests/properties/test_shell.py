"""What the parser is certain of is what bash does: random lines, run by a real bash that only writes down what it is
told to run.
"""

import subprocess

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from acp_bridge.permission.programs import beginning_of, covers
from acp_bridge.permission.shell import simple_commands
from acp_bridge.runners import RUNNERS, runs_anything

# no program is named so, and with this path there is none
_NOTE = 'PATH=/nonexistent; command_not_found_handle() { printf \'%s\\0\' "$#" "$@" >&9; }\n'
_SIGNS = (*";|&'\"\\$`(){},*?[]~#!=<>-21 \t\n", "&&", "||", "|&", "<<", "2>&1", "/dev/null", "$x")
_PIECES = st.sampled_from(["a", "b", "A", "é", " ", " ", "..", "\u00a0", *_SIGNS])
LINES = st.lists(_PIECES, min_size=1, max_size=14).map("".join)


def told_to_run(lines, folder):
    """For each line, the commands that bash was told to run, in any order."""
    note = folder / "note"
    found = []
    for line in lines:
        with note.open("wb") as file:
            shell = ["bash", "-c", f"{_NOTE}{line}"]
            # 9 is where the function writes: no redirection of the line reaches it
            subprocess.run(
                ["bash", "-c", 'exec 9>&1; exec "$@" >/dev/null 2>&1', "_", *shell],
                stdout=file,
                cwd=folder,
                check=False,
            )
        words = note.read_bytes().decode().split("\0")[:-1]
        commands = []
        while words:
            count = int(words[0])
            commands.append(tuple(words[1 : count + 1]))
            words = words[count + 1 :]
        found.append(commands)
    return found


def check(line, folder):
    certain = simple_commands(line)
    if certain is None:
        return
    [ran] = told_to_run([line], folder)
    # what stands behind && and || may not be reached; nothing else is ever run
    assert set(ran) <= set(certain), line


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example("a 'b' \"b\" a\"b\"'A' | b 2>&1 && a = b")
@example("a >/dev/null 2>&1; b --a=b\nA")
@example("\\ a")
@example("!a")
@example('a "b\\"b" "\\\\" "\\a"')
@given(LINES)
def test_bash_runs_nothing_that_the_parser_did_not_tell(tmp_path, line):
    check(line, tmp_path)


@pytest.mark.long
@settings(max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES)
def test_bash_runs_nothing_that_the_parser_did_not_tell_in_many_lines(tmp_path, line):
    check(line, tmp_path)


_WORDS = st.lists(st.sampled_from(["-c", "x", "run", "test", "-exec", "status", "--output=x"]), max_size=4)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(RUNNERS - {"."})),
    st.sampled_from(["", "/usr/bin/", "./"]),
    st.sampled_from(["", "3", "3.11"]),
    _WORDS,
)
def test_what_runs_its_own_words_has_no_beginning(name, folder, version, rest):
    program = f"{folder}{name}{version}"
    assert runs_anything(program)
    assert beginning_of((program, *rest)) is None
    assert not covers((program,), (program, *rest))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["git status", "npm run x", "pytest", "find", "go test"]), _WORDS)
def test_a_beginning_covers_the_command_that_it_was_made_of(command, rest):
    words = (*command.split(), *rest)
    beginning = beginning_of(words)
    assert beginning is None or (covers(beginning, words) and words[: len(beginning)] == beginning)
