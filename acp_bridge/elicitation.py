"""Questions to the user as forms of the editor (`elicitation/create`, surface.md §1.3).

May not know: tools, what a question is about. Invariant: a client that did not advertise forms is never asked, nor is
anybody in a turn that no prompt waits for; every answer, also garbage, is an outcome.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, cast

from acp_bridge.rpc.errors import ConnectionClosed, RpcError
from acp_bridge.schema import ClientCapabilities, FormResult, SchemaProblem, parse
from acp_bridge.wire import Wire
from agent_loop.tools.seam import AskUser, Form, FormAnswer, ToolContext
from bash_exec.secrets import SecretRegistry


class Asking(Protocol):
    """What of a session decides whether its user can be asked."""

    @property
    @abstractmethod
    def capabilities(self) -> ClientCapabilities:
        """Of its client."""

    @property
    @abstractmethod
    def prompt_owns_turn(self) -> bool:
        """A prompt waits for the turn that runs."""


class EditorForms(AskUser):
    """Asks the editor's user. `find(session_id)` is the live session of a call."""

    def __init__(self, wire: Wire, find: Callable[[str], Asking], *, secrets: SecretRegistry) -> None:
        self._wire = wire
        self._find = find
        self._secrets = secrets

    async def ask(self, context: ToolContext, form: Form) -> FormAnswer:
        session = self._find(context.session_id)
        if not session.capabilities.elicitation_form:
            return FormAnswer("unavailable", reason="this editor has none")
        if not session.prompt_owns_turn:
            return FormAnswer("unavailable", reason="nobody waits for this turn")
        params = {
            "mode": "form",
            "message": form.message,
            "sessionId": context.session_id,
            "toolCallId": context.call_id,
            "requestedSchema": {
                "type": "object",
                "properties": form.properties,
                "required": list(form.required),
            },
        }
        try:
            # a call runs with its arguments as the model wrote them; what is shown of them holds no secret
            shown = self._secrets.redact_json(params)
            result = parse(FormResult, await self._wire.request("elicitation/create", shown, signal=context.signal))
        except (RpcError, ConnectionClosed, SchemaProblem) as error:
            return FormAnswer("failed", reason=str(error))
        match result.action:
            case "accept":
                content: object = result.content
                return FormAnswer("accept", cast("dict[str, Any]", content) if isinstance(content, dict) else {})
            case "decline" | "cancel":
                return FormAnswer(result.action)
            case action:
                return FormAnswer("failed", reason=f"it answered {action!r:.40}")
