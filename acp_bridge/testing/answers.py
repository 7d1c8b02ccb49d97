"""What the virtual editor answers to the agent's own requests (contract snapshots.md §2: `permissionAnswers` …).

May not know: processes, threads. Invariant: answers go first in, first out; when they are used up a permission is
`cancelled` and everything else is an unknown method — a client that offers nothing. An answer that names a session
waits for a request of that session, one that names a method for that method; all others go to whoever asks next.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from acp_bridge.testing.json_values import JsonObject, as_object

_FAMILIES = {"session/request_permission": "permission", "elicitation/create": "elicitation"}
ADDRESS = frozenset({"session", "method"})
"""Keys of an answer that say for whom it is."""
_CANCELLED: JsonObject = {"result": {"outcome": {"outcome": "cancelled"}}}


class Answers:
    """The queues by family: `permission`, `elicitation`, `fs`, `terminal`.

    An answer holds one of `result`, `error`, `never`, `late` (a permission `kind` or `unknown` instead of `result`).
    What is late is a result, of a permission the kind of an option.
    """

    def __init__(self, queues: Mapping[str, Sequence[JsonObject]]) -> None:
        self._queues = {family: deque(rows) for family, rows in queues.items()}
        self._late: list[JsonObject] = []
        self._aliases: dict[str, str] = {}

    def name_session(self, session_id: str, alias: str) -> None:
        """Tell whose requests the answers for `alias` are for."""
        self._aliases[session_id] = alias

    def answer(self, request: JsonObject) -> JsonObject | None:
        """The response to `request` (`{id, result|error}`), None when it gets none, or none now.

        Raises `ValueError` when the script asks for an option that was not offered.
        """
        family = _FAMILIES.get(request["method"]) or str(request["method"]).split("/", maxsplit=1)[0]
        row = self._next(family, request)
        if "never" in row:
            return None
        if "error" in row:
            error: object = row["error"]
            body: JsonObject = {"error": error if isinstance(error, dict) else {"code": -32603, "message": "refused"}}
        elif family == "permission":
            body = _choice(request, row)
        elif row:
            body = {"result": row.get("result", row.get("late"))}
        else:
            body = {"error": {"code": -32601, "message": f"no answer for {request['method']}"}}
        response = {"id": request["id"], **body}
        if "late" in row:
            self._late.append(response)
            return None
        return response

    def _next(self, family: str, request: JsonObject) -> JsonObject:
        queue = self._queues.get(family, deque[JsonObject]())
        params = as_object(request.get("params")) or {}
        alias = self._aliases.get(params.get("sessionId", ""))
        for index, row in enumerate(queue):
            if row.get("session", alias) == alias and row.get("method", request["method"]) == request["method"]:
                del queue[index]
                return {key: value for key, value in row.items() if key not in ADDRESS}
        return {}

    def late(self) -> list[JsonObject]:
        """The late answers, each once: due when the prompt that asked has been answered."""
        due, self._late = self._late, []
        return due


def _choice(request: JsonObject, row: JsonObject) -> JsonObject:
    if not row:
        return _CANCELLED
    if "unknown" in row:
        return {"result": {"outcome": {"outcome": "selected", "optionId": "an-option-nobody-offered"}}}
    kind = row.get("kind") or row["late"]
    offered = {option["kind"]: option["optionId"] for option in request["params"]["options"]}
    if kind not in offered:
        raise ValueError(f"the script answers {kind}, which was not offered ({', '.join(offered)})")
    return {"result": {"outcome": {"outcome": "selected", "optionId": offered[kind]}}}
