"""One story that every official client tells: what the model says in it, and what the client must have seen.

The editor offers its files and terminals: `todo.txt` has an unsaved buffer, every terminal prints the same line.
"""

import json
from pathlib import Path
from typing import Any

from tests.support.bash_calls import bash_call, done

CONFIG = 'terminal = "client"\n'
UNSAVED = "unsaved thought\n"
TERMINAL_OUTPUT = "from the editor's terminal\n"
PROMPTS = ("refuse", "allow", "cancel", "look", "always", "again", "free")
PERMISSIONS = ("reject_once", "allow_once", "cancelled", "allow_always")
"""How the questions of the story are answered, in their order."""


def prepare(cwd: str) -> None:
    """The workspace of the story."""
    Path(cwd, "todo.txt").write_text("on disk\n", encoding="utf-8")


def script() -> list[dict[str, Any]]:
    """The answers of the model: to each of `PROMPTS` a call and a text, then one text each for a load and a resume."""
    calls = (
        _file_call("write", file_path="refused.txt", content="never\n"),
        _file_call("write", file_path="new.txt", content="hello\n"),
        bash_call("touch cancelled"),
        _file_call("read", file_path="todo.txt"),
        bash_call("echo always"),
        bash_call("echo always"),
        bash_call("echo free"),
    )
    turns = [answer for call, name in zip(calls, PROMPTS, strict=True) for answer in (call, done(f"end of {name}"))]
    return [*turns, done("after the load"), done("after the resume")]


def expected(cwd: str) -> dict[str, Any]:
    """What a client has seen of it, as JSON."""
    return {
        "mode": "ask",
        "options": ["mode", "model", "reasoning_effort"],
        "stops": ["end_turn"] * len(PROMPTS),
        "asked": ["Write refused.txt", "Write new.txt", "touch cancelled", "echo always"],
        "first options": ["allow_once", "allow_always", "reject_once", "reject_always"],
        "cards": ["failed", "completed", "failed", "completed", "completed", "completed", "completed"],
        "files read": [f"{cwd}/todo.txt"],
        "files written": [[f"{cwd}/new.txt", "hello\n"]],
        "terminals": 3,
        "terminals open": 0,
        "modes": ["full"],
        "effort": "high",
        "titles": ["refuse"],
        "loaded": " ".join(f"end of {name}" for name in PROMPTS),
        "loaded mode": "full",
        "after the load": "after the load",
        "updates of the resume": [],
        "after the resume": "after the resume",
    }


def _file_call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "tool_calls": [
            {"id": f"call-{tool}-{arguments['file_path']}", "name": tool, "arguments": [json.dumps(arguments)]}
        ]
    }
