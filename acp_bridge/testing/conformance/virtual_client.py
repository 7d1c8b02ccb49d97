"""The client's own services of a check: files, terminals, forms; nothing is really run.

May not know: rules. Invariant: every request is kept in `calls`, in order; a terminal has ended when it is asked.
"""

from collections.abc import Collection, Mapping
from typing import Any

from acp_bridge.testing.conformance.turns import PERMISSION, permit
from acp_bridge.testing.json_values import JsonObject, as_object

TERMINAL_TEXT = "text of the client's terminal"


class VirtualClient:
    """A policy for `Lab.agent`. `empty` is the result of methods that return nothing.

    Methods in `silent` get no answer, those in `failing` an error. `files` is what the editor holds, by path. `form` is
    the answer to elicitation/create.
    """

    def __init__(
        self,
        *,
        files: Mapping[str, str] | None = None,
        empty: JsonObject | None = None,
        silent: Collection[str] = (),
        failing: Collection[str] = (),
        form: JsonObject | None = None,
    ) -> None:
        self.calls: list[tuple[str, JsonObject]] = []
        self.files = dict(files or {})
        self.empty = empty
        self.silent = silent
        self.failing = failing
        self.form = form or {"action": "decline"}
        self._terminals = 0

    def __call__(self, request: JsonObject) -> JsonObject | None:
        """The answer to a request of the agent."""
        method, params = str(request["method"]), as_object(request.get("params")) or {}
        self.calls.append((method, params))
        if method in self.silent:
            return None
        if method in self.failing:
            return {"error": {"code": -32603, "message": f"this client fails {method}"}}
        if method == PERMISSION:
            return permit(request, "allow_once")
        return {"result": self._result(method, params)}

    def made(self, prefix: str) -> list[str]:
        """The methods of a family that were called, in order."""
        return [method for method, _ in self.calls if method.startswith(prefix)]

    def terminals(self, method: str) -> list[Any]:
        """The terminal ids that a method was called with."""
        return [params.get("terminalId") for name, params in self.calls if name == method]

    def _result(self, method: str, params: JsonObject) -> JsonObject | None:
        if method == "terminal/create":
            self._terminals += 1
            return {"terminalId": f"terminal-{self._terminals}"}
        if method == "fs/write_text_file":
            self.files[params["path"]] = params["content"]
        results: Mapping[str, JsonObject] = {
            "fs/read_text_file": {"content": self.files.get(str(params.get("path")), "")},
            "terminal/output": {"output": TERMINAL_TEXT, "truncated": False, "exitStatus": {"exitCode": 0}},
            "terminal/wait_for_exit": {"exitCode": 0},
            "elicitation/create": self.form,
        }
        return results.get(method, self.empty)
