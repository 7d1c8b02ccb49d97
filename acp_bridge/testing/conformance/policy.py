"""What the client of a check answers to the agent's own requests, by one policy for the whole of a process.

May not know: processes, rules. Invariant: a word answers every permission request, whatever is offered.
"""

from collections.abc import Callable
from typing import Literal

from acp_bridge.testing.answers import Answers
from acp_bridge.testing.json_values import JsonObject, as_list, as_object

Policy = Literal["allow", "reject", "cancel", "never"] | Callable[[JsonObject], JsonObject | None]
"""What the client answers to the agent's requests. A word speaks about permissions, and everything else is an unknown
method; a callable gets the request frame and returns `{"result": …}` or `{"error": …}`, None for no answer."""

_PREFERRED = {"allow": ("allow_once", "allow_always"), "reject": ("reject_once", "reject_always")}


class PolicyAnswers(Answers):
    """The client's answers by policy."""

    def __init__(self, policy: Policy) -> None:
        super().__init__({})
        self._policy: Policy = policy

    def answer(self, request: JsonObject) -> JsonObject | None:
        """The response to `request`, None when it gets none."""
        body = self._policy(request) if callable(self._policy) else _by_word(self._policy, request)
        return None if body is None else {"id": request["id"], **body}


def _by_word(word: str, request: JsonObject) -> JsonObject | None:
    if request["method"] != "session/request_permission":
        return {"error": {"code": -32601, "message": f"this client has no {request['method']}"}}
    if word == "never":
        return None
    options = [as_object(option) or {} for option in as_list(request["params"].get("options")) or []]
    offered = {option.get("kind"): option.get("optionId") for option in options}
    chosen = next((offered[kind] for kind in _PREFERRED.get(word, ()) if kind in offered), None)
    if chosen is None:
        return {"result": {"outcome": {"outcome": "cancelled"}}}
    return {"result": {"outcome": {"outcome": "selected", "optionId": chosen}}}
