"""Plays the steps of a script on a virtual editor (contract snapshots.md §2).

May not know: the agent under test, files of a scenario. Invariant: a step that cannot do what it says raises, naming
its number and operation; `{{cwd}}` in a step is the run's directory.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from acp_bridge.testing.answers import Answers
from acp_bridge.testing.editor import Editor, EditorError, is_response
from acp_bridge.testing.json_values import JsonObject, contains, encode
from acp_bridge.testing.normalise import update_of
from acp_bridge.testing.scenario import Script, Step

_POLL_SECONDS = 0.02
_SHOWN = 1000  # characters of a frame in an error


class Player:
    """One run of one script. `session_ids` lists the sessions in the order of their creation.

    `answers` are those of the editor: they learn which session an alias means.
    """

    def __init__(
        self,
        editor: Editor,
        *,
        cwd: Path,
        answers: Answers | None = None,
        settles_session: str | None = None,
        seconds: float = 30.0,
    ) -> None:
        self.session_ids: list[str] = []
        self._editor = editor
        self._cwd = cwd
        self._answers = answers or Answers({})
        self._settles_session = settles_session
        self._seconds = seconds
        self._sessions: dict[str, str] = {}
        self._prompts: dict[str, list[int]] = {}
        self._seen: dict[str, int] = {}  # waitForUpdate looks behind what it found last
        self._operations: Mapping[str, Callable[[Step, JsonObject], object]] = {
            "initialize": self._initialize,
            "newSession": self._new_session,
            "newSessionExpectError": self._new_session_expect_error,
            "loadSession": self._open("session/load"),
            "resumeSession": self._open("session/resume"),
            "closeSession": self._call("session/close"),
            "listSessions": self._list_sessions,
            "prompt": self._prompt,
            "promptExpectError": self._prompt_expect_error,
            "promptAndCancel": self._prompt_and_cancel,
            "cancel": self._cancel,
            "setMode": self._call("session/set_mode"),
            "setConfigOption": self._call("session/set_config_option"),
            "request": self._request,
            "requestExpectError": self._request_expect_error,
            "waitForTurnEnd": self._wait_for_turn_end,
            "waitForUpdate": self._wait_for_update,
            "expectQuiet": self._expect_quiet,
            "advance": self._advance,
            "restart": self._restart,
        }

    def play(self, script: Script) -> None:
        """Start the agent, play every step, end the agent. Raises `EditorError`."""
        self._editor.start()
        for step in script.steps:
            fields = json.loads(encode(step.fields).replace("{{cwd}}", encode(str(self._cwd))[1:-1]))
            try:
                self._operations[step.op](step, fields)
            except EditorError as error:
                raise EditorError(f"step {step.number} ({step.op}): {error}") from error
        self._editor.stop()

    def _session(self, step: Step) -> str:
        if step.session not in self._sessions:
            raise EditorError(f"session {step.session!r} does not exist yet")
        return self._sessions[step.session]

    def _result(self, request_id: int, *, seconds: float | None = None) -> JsonObject:
        response = self._editor.response(request_id, seconds=seconds)
        if "error" in response:
            raise EditorError(f"answered with an error: {encode(response['error'])}")
        return response["result"]

    def _expect_error(self, request_id: int) -> None:
        response = self._editor.response(request_id)
        if "error" not in response:
            raise EditorError(f"an error was expected, it succeeded: {encode(response['result'])}")

    def _initialize(self, _step: Step, fields: JsonObject) -> None:
        capabilities: JsonObject = fields.get("capabilities", {})
        if fields.get("terminalOutput"):
            capabilities = {**capabilities, "_meta": {**capabilities.get("_meta", {}), "terminal_output": True}}
        client = {"name": "snapshot-editor", "version": "1"}
        params = {"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client}
        self._result(self._editor.request("initialize", params))

    def _new_session(self, step: Step, fields: JsonObject) -> None:
        since = len(self._editor.entries)
        params: JsonObject = {"cwd": str(self._cwd), "mcpServers": [], **fields}
        session_id: str = self._result(self._editor.request("session/new", params))["sessionId"]
        self._sessions[step.session] = session_id
        self._answers.name_session(session_id, step.session)
        self.session_ids.append(session_id)
        self._settle(session_id, since)

    def _new_session_expect_error(self, _step: Step, fields: JsonObject) -> None:
        params: JsonObject = {"cwd": str(self._cwd), "mcpServers": [], **fields}
        self._expect_error(self._editor.request("session/new", params))

    def _open(self, method: str) -> Callable[[Step, JsonObject], None]:
        def run(step: Step, _fields: JsonObject) -> None:
            session_id = self._session(step)
            since = len(self._editor.entries)
            params: JsonObject = {"sessionId": session_id, "cwd": str(self._cwd), "mcpServers": []}
            self._result(self._editor.request(method, params))
            self._settle(session_id, since)

        return run

    def _settle(self, session_id: str, since: int) -> None:
        if self._settles_session is not None:
            self._await_update(session_id, {"sessionUpdate": self._settles_session}, since=since)

    def _call(self, method: str) -> Callable[[Step, JsonObject], None]:
        def run(step: Step, fields: JsonObject) -> None:
            self._result(self._editor.request(method, {"sessionId": self._session(step), **fields}))

        return run

    def _request(self, _step: Step, fields: JsonObject) -> None:
        self._result(self._editor.request(fields["method"], fields.get("params", {})))

    def _request_expect_error(self, _step: Step, fields: JsonObject) -> None:
        self._expect_error(self._editor.request(fields["method"], fields.get("params", {})))

    def _list_sessions(self, _step: Step, fields: JsonObject) -> None:
        self._result(self._editor.request("session/list", fields))

    def _send_prompt(self, step: Step, fields: JsonObject) -> int:
        blocks = fields["blocks"] if "blocks" in fields else [{"type": "text", "text": fields["text"]}]
        return self._editor.request("session/prompt", {"sessionId": self._session(step), "prompt": blocks})

    def _prompt(self, step: Step, fields: JsonObject) -> None:
        request_id = self._send_prompt(step, fields)
        if fields.get("wait", True):
            self._result(request_id)
        else:
            self._prompts.setdefault(self._session(step), []).append(request_id)

    def _prompt_expect_error(self, step: Step, fields: JsonObject) -> None:
        self._expect_error(self._send_prompt(step, fields))

    def _prompt_and_cancel(self, step: Step, fields: JsonObject) -> None:
        since = len(self._editor.entries)
        request_id = self._send_prompt(step, fields)
        if "waitForFile" in fields:
            self._await_file(Path(self._cwd, fields["waitForFile"]), request_id)
        else:
            after: Any = fields.get("afterUpdate", "agent_message_chunk")
            wanted = {"sessionUpdate": after} if isinstance(after, str) else after
            self._await_update(self._session(step), wanted, since=since, during=request_id)
        self._cancel(step, fields)
        self._result(request_id)

    def _await_file(self, path: Path, request_id: int) -> None:
        deadline = time.monotonic() + self._seconds
        while not path.exists():
            answered = any(is_response(entry.frame, request_id) for entry in tuple(self._editor.entries))
            if answered or time.monotonic() > deadline:
                raise EditorError(f"{path.name} did not appear while the prompt ran")
            time.sleep(_POLL_SECONDS)  # a file of another process: there is no event for it everywhere

    def _cancel(self, step: Step, _fields: JsonObject) -> None:
        self._editor.notify("session/cancel", {"sessionId": self._session(step)})

    def _wait_for_turn_end(self, step: Step, fields: JsonObject) -> None:
        for request_id in self._prompts.pop(self._session(step), []):
            self._result(request_id, seconds=_seconds(fields))

    def _wait_for_update(self, step: Step, fields: JsonObject) -> None:
        session_id, match = self._session(step), fields["match"]
        wanted = {"sessionUpdate": match} if isinstance(match, str) else match
        since = self._seen.get(session_id, 0)
        self._seen[session_id] = self._await_update(session_id, wanted, since=since, seconds=_seconds(fields)) + 1

    def _await_update(
        self,
        session_id: str,
        wanted: JsonObject,
        *,
        since: int,
        seconds: float | None = None,
        during: int | None = None,
    ) -> int:
        """The index of the update; it has to come before the answer to the request `during`."""

        def matches(frame: JsonObject) -> bool:
            if during is not None and is_response(frame, during):
                return True
            update = update_of(frame)
            return bool(update) and frame["params"].get("sessionId") == session_id and contains(update, wanted)

        index, frame = self._editor.wait(matches, since=since, what=f"update {encode(wanted)}", seconds=seconds)
        if "method" not in frame:
            raise EditorError(f"answered before its update {encode(wanted)}: {encode(frame)[:_SHOWN]}")
        return index

    def _expect_quiet(self, _step: Step, fields: JsonObject) -> None:
        self._editor.expect_quiet(fields["ms"] / 1000)

    def _advance(self, _step: Step, fields: JsonObject) -> None:
        self._result(self._editor.request("_dsh/clock/advance", {"ms": fields["ms"]}))

    def _restart(self, _step: Step, _fields: JsonObject) -> None:
        self._editor.stop()
        self._editor.start()


def _seconds(fields: JsonObject) -> float | None:
    return fields["timeoutMs"] / 1000 if "timeoutMs" in fields else None
