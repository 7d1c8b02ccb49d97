"""`python -m acp_bridge.testing.demo SCENARIO`: a recorded session, played by the real agent and printed for a person.

May not know: the agent beyond its command. Invariant: everything printed was read from the agent's stdout in this run;
the reload at the end is a second process, and what it shows is compared with what was shown live.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from acp_bridge.testing.answers import Answers
from acp_bridge.testing.editor import Editor
from acp_bridge.testing.json_values import JsonObject
from acp_bridge.testing.scenario import load_script

PACE_SECONDS = 0.02
"""Between two frames on a terminal: about as fast as a model talks."""

_CLIENT: JsonObject = {"protocolVersion": 1, "clientCapabilities": {"_meta": {"terminal_output": True}}}
_PROMPTED = "session/prompt"


class Screen:
    """Prints updates as an editor's panel would show them; `said` keeps the text of the messages."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._message = ""
        self._column = 0
        self.said = ""
        self.outputs = ""

    def title(self, text: str) -> None:
        """A line of our own, between the parts of the session."""
        self._break()
        self._console.print(Text(f"\n── {text} ", style="bold blue"))

    def show(self, frame: JsonObject) -> None:
        """Print one frame of the agent."""
        params: JsonObject = frame.get("params") or {}
        if frame.get("method") == "session/request_permission":
            self._line(f"  ? allow “{params['toolCall']['title'].splitlines()[0]}” …  [Allow this call]", "yellow")
        elif frame.get("method") == "session/update":
            self._update(params["update"])

    def _update(self, update: JsonObject) -> None:
        kind: str = update["sessionUpdate"]
        styles = {"user_message_chunk": "bold cyan", "agent_message_chunk": "", "agent_thought_chunk": "dim italic"}
        if kind in styles:
            self._chunk(update, styles[kind], "› " if kind == "user_message_chunk" else "")
        elif kind == "tool_call":
            for line in update["title"].splitlines():
                self._line(f"  $ {line}", "bold green")
            for block in update.get("content", []):
                if block["type"] == "content":
                    self._line(f"    {block['content']['text']}", "dim")
        if kind in {"tool_call", "tool_call_update"}:
            self._terminal(update.get("_meta") or {})

    def _chunk(self, update: JsonObject, style: str, mark: str) -> None:
        text: str = update["content"]["text"]
        if update["messageId"] != self._message:
            self._break()
            self._message = update["messageId"]
            self._console.print(Text(mark, style=style), end="")
        if update["sessionUpdate"] == "agent_message_chunk":
            self.said += text
        self._console.print(Text(text, style=style), end="", soft_wrap=True)
        self._column = 1

    def _terminal(self, meta: JsonObject) -> None:
        output: JsonObject = meta.get("terminal_output") or {}
        data: str = output.get("data", "")
        self.outputs += data
        for line in data.splitlines():
            self._line(f"  │ {line}", "")
        if ended := meta.get("terminal_exit"):
            self._line(f"  └ exit {ended['exit_code'] if ended['signal'] is None else ended['signal']}", "green")

    def _line(self, text: str, style: str) -> None:
        self._break()
        self._console.print(Text(text, style=style), soft_wrap=True)

    def _break(self) -> None:
        if self._column:
            self._console.print()
        self._message, self._column = "", 0


def play(scenario: Path, command: Sequence[str], console: Console, *, pause: Callable[[], None]) -> bool:
    """Play the scenario's first prompt, then reload the session in a second process.

    True when the reload showed the same messages and command output. Raises `EditorError`, `ScenarioError`.
    """
    script = load_script(scenario / "input.json")
    text = next(step.fields["text"] for step in script.steps if step.op == "prompt")
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="acp-demo-")))
    try:
        cwd = shutil.copytree(scenario / "workspace", root / "workspace")
        env = {
            **{name: os.environ[name] for name in os.environ if name == "PATH" or name.startswith("COVERAGE_")},
            "HOME": str(root),
            "DSH_SNAPSHOT": "replay",
            "DSH_SNAPSHOT_FILE": str((scenario / "session.jsonl").absolute()),
            "DSH_SNAPSHOT_SESSIONS_ROOT": str(root / "sessions"),
        }
        editor = Editor(command, cwd=cwd, env=env, stderr=root / "stderr", answers=Answers(script.answers))
        try:
            return _play(editor, text, str(cwd), console, pause)
        finally:
            editor.kill()
    finally:
        shutil.rmtree(root)


def _play(editor: Editor, text: str, cwd: str, console: Console, pause: Callable[[], None]) -> bool:
    live, loaded = Screen(console), Screen(console)
    live.title("a new session")
    editor.start()
    _ask(editor, "initialize", _CLIENT, live, pause)
    session: str = _ask(editor, "session/new", {"cwd": cwd, "mcpServers": []}, live, pause)["sessionId"]
    console.print(Text(f"› {text}", style="bold cyan"), soft_wrap=True)
    prompt: JsonObject = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    ended = _ask(editor, _PROMPTED, prompt, live, pause)
    live.title(f"the turn ended: {ended['stopReason']}; now another process loads the session")
    editor.stop()
    editor.start()
    _ask(editor, "initialize", _CLIENT, loaded, pause)
    _ask(editor, "session/load", {"sessionId": session, "cwd": cwd, "mcpServers": []}, loaded, pause)
    editor.stop()
    same = (live.said, live.outputs) == (loaded.said, loaded.outputs)
    loaded.title("the same transcript, from the log" if same else "the reloaded transcript differs")
    return same


def _ask(editor: Editor, method: str, params: JsonObject, screen: Screen, pause: Callable[[], None]) -> JsonObject:
    at = len(editor.entries)
    request = editor.request(method, params)
    while True:
        index, frame = editor.wait(lambda _frame: True, since=at, what=f"answer to {method}")
        at = index + 1
        if frame.get("id") == request and "method" not in frame:
            return frame["result"]
        screen.show(frame)
        pause()


def main() -> NoReturn:
    """The command; exits 1 when the reload differs."""
    console = Console(highlight=False)
    pace = PACE_SECONDS if console.is_terminal else 0.0
    same = play(Path(sys.argv[1]), ["dsh-acp-agent"], console, pause=lambda: time.sleep(pace))  # a person reads along
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
