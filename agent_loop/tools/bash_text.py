"""A command's result as text for the model, as display facts, and as console text for people.

May not know: how commands run. Invariant: pure; the structured outcome rides in `meta`, so nothing ever reads an exit
code back out of the text. Source: contract tools-and-bash.md §2.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from agent_loop.vocabulary import JsonObject
from bash_exec.seam import BackgroundTask, CommandResult, StreamCapture, Survivor, TaskOutput

_COMMAND_SHOWN: Final = 80
_BACKTICKS: Final = re.compile("`+")

_NO_INPUT: Final = "commands have no terminal and no standard input"
_ANSWERS: Final = f"{_NO_INPUT}; pass the answers as arguments or use the non-interactive option"
# first match wins; each hint names the way round the prompt that nobody can answer
_HINTS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (
        re.compile(
            r"sudo: (?:a terminal is required|a password is required|no tty present|sorry, you must have a tty)"
        ),
        f"{_NO_INPUT}, so sudo cannot ask for a password; ask the user to run it",
    ),
    (
        re.compile(r"could not read (?:Username|Password)|terminal prompts disabled"),
        "git cannot ask for credentials here; the user must set up a credential helper, a token or ssh",
    ),
    (
        re.compile(r"Host key verification failed|Permission denied \([a-z,-]*(?:publickey|password)"),
        "ssh runs in batch mode and cannot ask; the user must accept the host key or load an ssh key first",
    ),
    (
        re.compile(r"Do you want to continue\? \[Y/n\] Abort"),
        "apt asks before it goes on and nobody can answer; add -y when the user agrees to what it lists",
    ),
    (
        re.compile(
            r"EOFError: EOF when reading a line|the input device is not a TTY|Error opening terminal"
            r"|(?<!because )[Ss]tdin is not a t(?:ty|erminal)|/dev/tty'?: No such device or address"
        ),
        _ANSWERS,
    ),
)
# without a `<` and without a pipe, such a word reads the standard input; a silent end is all that shows then
_READS_INPUT: Final = re.compile(
    r"(?:^|[;&({\n]|\|\||\b(?:if|then|do|while|until|else|!)\s)\s*(?:read\b|cat\s*(?:$|[;&>)\n]))"
)
_HAS_INPUT: Final = re.compile(r"<|(?<!\|)\|(?!\|)")


def model_text(result: CommandResult, *, command: str = "") -> str:
    """What the model reads: stdout, `[stderr]`, then the notes that are true, each on a line of its own.

    `command` is what was run; a silent one that must have waited for input gets a hint.
    """
    parts: list[str] = []
    if result.stdout.text:
        parts.append(result.stdout.text)
    parts += _capture_notes(result.stdout)
    if result.stderr.text:
        parts.append(f"[stderr]\n{result.stderr.text}")
    parts += _capture_notes(result.stderr)
    if not parts:
        parts.append("(no output)")
    parts += _outcome_notes(result, command)
    return _lines(parts)


def result_meta(result: CommandResult, output: str, *, output_dropped: int = 0) -> JsonObject:
    """The display facts of a result; those that are not so are left out.

    `{exitCode|signal, timedOut?, aborted?, outputLimit?, truncated?, spillPaths?, survivors?, background?,
    outputDropped?, output}`: `survivors` and `background` are pids, `outputLimit` is bytes. `output` is the
    sanitised text of both streams in order of arrival, as an editor's terminal shows it; `outputDropped` counts the
    bytes that its middle lacks.
    """
    spills = [capture.spill_path for capture in (result.stdout, result.stderr) if capture.spill_path is not None]
    meta: JsonObject = {"exitCode": result.exit_code} if result.signal is None else {"signal": result.signal}
    facts: JsonObject = {
        "timedOut": result.timed_out,
        "aborted": result.aborted,
        "outputLimit": result.output_limit,
        "truncated": result.stdout.truncated or result.stderr.truncated,
        "spillPaths": spills,
        "survivors": [survivor.pid for survivor in result.survivors],
        "background": [survivor.pid for survivor in result.background],
        "outputDropped": output_dropped,
    }
    meta.update({key: fact for key, fact in facts.items() if fact})
    meta["output"] = output
    return meta


def task_output_text(output: TaskOutput) -> str:
    """What is new of a background command: text, what was lost, `[status: …]`."""
    parts = [output.text or "(no new output)"]
    if output.lost_bytes:
        where = f"; full output: {output.spill_path}" if output.spill_path else ""
        parts.append(f"[{output.lost_bytes} bytes lost{where}]")
    parts.append(f"[status: {_status(output)}]")
    return _lines(parts)


def task_meta(task: BackgroundTask | TaskOutput) -> JsonObject:
    """`{status, exitCode?, signal?}` of a background command."""
    meta: JsonObject = {"status": task.status}
    if task.exit_code is not None:
        meta["exitCode"] = task.exit_code
    if task.signal is not None:
        meta["signal"] = task.signal
    return meta


def output_meta(output: TaskOutput) -> JsonObject:
    """`task_meta` and `{offset, nextOffset, lost?}`: which bytes of the output were read, how many before are gone."""
    meta = task_meta(output) | {"offset": output.offset, "nextOffset": output.next_offset}
    return meta | {"lost": output.lost_bytes} if output.lost_bytes else meta


def tasks_text(tasks: Sequence[BackgroundTask]) -> str:
    """The background commands of a session, as the end of a sentence."""
    if not tasks:
        return "it has none"
    rows = (f"{task.id} [status: {_status(task)}] {_short(task.command)}" for task in tasks)
    return "\n".join(["it has:", *rows])


def started_text(task: BackgroundTask) -> str:
    """The answer to a command that was put into the background."""
    return f"started in the background as {task.id}; bash_output reads its output, bash_kill ends it"


def killed_text(task: BackgroundTask) -> str:
    """The answer to `bash_kill`; a task that had ended before is reported as it ended."""
    return f"{task.id} has ended [status: {_status(task)}]"


def completion_text(task: BackgroundTask) -> str:
    """The one notice that a background command has ended by itself."""
    return (
        f"background command {task.id} ({_short(task.command)}) has ended: {_status(task)}; bash_output reads the rest"
    )


def fenced_console(text: str) -> str:
    """A Markdown console block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}console\n{_lines([text, fence])}"


def _capture_notes(capture: StreamCapture) -> Iterable[str]:
    if capture.truncated:
        where = f"; full output: {capture.spill_path}" if capture.spill_path else ""
        yield f"[output truncated: {capture.dropped_bytes} bytes, {capture.dropped_lines} lines dropped{where}]"
    if capture.binary:
        yield "[binary data in the output]"


def _outcome_notes(result: CommandResult, command: str) -> Iterable[str]:
    if result.aborted:
        yield "[aborted]"
    if result.timed_out:
        yield f"[timed out after {result.timeout_ms}ms]"
    if result.output_limit is not None:
        yield f"[stopped at the output limit of {result.output_limit} bytes]"
    if result.signal is not None:
        yield f"[killed by signal: {result.signal}]"
    elif result.exit_code:
        yield f"[exit code: {result.exit_code}]"
    yield from _hints(result, command)
    if result.survivors:
        yield f"[{len(result.survivors)} processes survived: {_processes(result.survivors)}]"
    if result.background:
        yield f"[still running in background: {_processes(result.background)}]"


def _hints(result: CommandResult, command: str) -> Iterable[str]:
    if not result.stdout.text and not result.stderr.text:
        if result.exit_code is not None and _READS_INPUT.search(command) and not _HAS_INPUT.search(command):
            yield f"[hint: {_ANSWERS}]"
    elif result.exit_code:
        for pattern, hint in _HINTS:
            if pattern.search(result.stderr.text) or pattern.search(result.stdout.text):
                yield f"[hint: {hint}]"
                return


def _processes(survivors: Iterable[Survivor]) -> str:
    return ", ".join(f"{survivor.pid} ({_short(survivor.command)})" for survivor in survivors)


def _status(task: BackgroundTask | TaskOutput) -> str:
    if task.signal is not None:
        return f"{task.status}, signal: {task.signal}"
    if task.exit_code is not None:
        return f"{task.status}, exit code: {task.exit_code}"
    return task.status


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= _COMMAND_SHOWN else f"{line[:_COMMAND_SHOWN]}…"


def _lines(parts: list[str]) -> str:
    # a part that ends its own line gets no second one
    return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts[:-1]) + parts[-1]
