"""Runs the search process: ripgrep when it is on PATH, else Python; both write the same (see `search_main`).

May not know: cards, models. Invariant: the process gets nothing of the agent's environment but PATH, is ended once the
limit is reached or the turn ends, and is always awaited.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import IO, Final

import anyio.to_thread

from agent_loop.abort import AbortSignal
from agent_loop.tools.files.seam import FileProblem
from agent_loop.tools.files.search_main import BAD_PATTERN

MATCHES: Final = 200
LINE_CHARACTERS: Final = 300
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from agent_loop.tools.files.search_main import main; "
    "sys.exit(main(sys.argv[1:], sys.stdout.buffer))"
)
_RIPGREP: Final = (
    *("--no-config", "--color=never", "--no-heading", "--with-filename", "--line-number", "--null", "--crlf"),
    *("--no-messages", "--hidden", "--no-ignore-global", "--no-ignore-dot", "--max-filesize=16M", "--sort=path"),
)


@dataclass(frozen=True, slots=True)
class Match:
    """One matching line: `path` relative to the directory, `line` 1-based, `text` cut after `LINE_CHARACTERS`."""

    path: str
    line: int
    text: str


async def search(
    pattern: str, *, directory: str, name: str, glob: str, signal: AbortSignal
) -> tuple[list[Match], bool]:
    """The first `MATCHES` matching lines of the file `name` in `directory`, or of all below it; and whether there are
    more.

    `directory` is absolute and resolved. Raises `FileProblem` for a pattern that is none, and when the turn ends.
    """
    process, output = _start(_command(pattern, directory, name, glob), directory)
    forget = signal.on_abort(process.kill)
    try:
        matches, more, problem = await anyio.to_thread.run_sync(_collect, process, output)
    finally:
        forget()
    if signal.aborted:
        raise FileProblem("the turn ended before the search did", "aborted")
    if process.returncode == BAD_PATTERN:
        raise FileProblem(f"the search failed: {problem.strip()}", "INVALID_ARGS")
    return matches, more


def _command(pattern: str, directory: str, name: str, glob: str) -> list[str]:
    ripgrep = shutil.which("rg")
    if ripgrep is None:
        return [sys.executable, "-I", "-S", "-c", _BOOT, _ROOT, pattern, directory, name, glob]
    chosen = [f"--glob={glob}"] if glob else []
    return [ripgrep, *_RIPGREP, *chosen, "--glob=!.git", f"--regexp={pattern}", "--", name or "."]


def _start(command: list[str], directory: str) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """The process, and what it writes: its errors last."""
    ours, theirs = os.pipe()
    try:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return process, os.fdopen(ours, "rb")


def _collect(process: subprocess.Popen[bytes], output: IO[bytes]) -> tuple[list[Match], bool, str]:
    """The matches, whether there are more, and what else was said."""
    matches: list[Match] = []
    remarks: list[str] = []
    more = False
    with process, output:
        for row in output:
            path, nul, rest = row.decode("utf-8", "replace").rstrip("\r\n").partition("\0")
            if not nul:
                # why a pattern is none; or ripgrep has met a binary file
                remarks.append(path)
            elif len(matches) < MATCHES:
                number, _, text = rest.partition(":")
                cut = f"{text[:LINE_CHARACTERS]}… [line cut]" if len(text) > LINE_CHARACTERS else text
                matches.append(Match(path.removeprefix("./"), int(number), cut))
            else:
                more = True
                process.kill()
                break
    return matches, more, " ".join(remarks)
