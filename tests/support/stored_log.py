"""A long session log, written at once: what months of work leave behind."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from agent_loop.session.layout import log_path
from tests.support.session_turns import Pair, delta, step_end, step_start, text, turn_end, turn_start, user

SESSION = "0e5b2fc1-d220-4a81-b48b-000000000001"


def work(*, deltas: int, calls: int, output: int) -> Iterator[Pair]:
    """One turn: `calls` steps, each with its share of the `deltas` and a command that prints `output` characters."""
    lines = (f"{line:06d} \x1b[32mok\x1b[0m some line of a build\n" for line in range(output))
    printed = "".join(islice(lines, output // 37))
    yield from (turn_start(1), user("build it"))
    for step in range(1, calls + 1):
        said = [f" word {number}" for number in range(deltas // calls)]
        arguments = json.dumps({"command": f"make part{step}", "description": "Build"})
        call = {"callId": f"call_{step}", "name": "bash", "arguments": arguments}
        at = {"turn": 1, "step": step}
        yield step_start(1, step)
        yield from (delta(1, step, word) for word in said)
        asked = {"type": "tool-call", "id": call["callId"], "name": "bash", "arguments": arguments}
        yield "assistant/message", {**at, "content": [*text("".join(said)), asked]}
        yield "tool/call", {**at, **call}
        facts = {"exitCode": 0, "output": printed}
        result = {"callId": call["callId"], "content": text(printed), "isError": False, "meta": facts}
        yield "tool/result", {**at, **result}
        yield step_end(1, step)
    yield turn_end(1)


def speech(*, deltas: int, size: int) -> Iterator[Pair]:
    """One turn of one step that says `deltas` pieces of `size` characters."""
    yield from (turn_start(1), user("speak"), step_start(1, 1))
    yield from (delta(1, 1, "x" * size) for _ in range(deltas))
    yield "assistant/message", {"turn": 1, "step": 1, "content": text("long")}
    yield from (step_end(1, 1), turn_end(1))


def write_log(root: Path, cwd: str, pairs: Iterator[Pair]) -> Path:
    """The log of session `SESSION` below `root`."""
    path = log_path(root, SESSION, cwd)
    path.parent.mkdir(parents=True, mode=0o700)
    header = {"type": "session", "version": 1, "id": SESSION, "createdAt": 0, "cwd": cwd}
    with path.open("w", encoding="utf-8") as file:
        file.write(_line(header))
        for seq, (kind, data) in enumerate(pairs):
            file.write(_line({"type": kind, "seq": seq, "time": seq, "data": data}))
    return path


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"
