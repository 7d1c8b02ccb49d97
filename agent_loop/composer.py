"""What the requests of one agent are made of, worked out from what is new in it (contract agent-loop.md §3 "Step").

May not know: turns, layers, how a request is sent. Invariant: what it keeps from the request before changes no word of
the next one: sections, tools and messages are known by being the same, and none of them is changed once it is made.
"""

from agent_loop.llm.fingerprint import Scrub, fingerprint, request_parameters
from agent_loop.llm.history import Normaliser
from agent_loop.llm.seam import LlmRequest
from agent_loop.prompt import Sections, render
from agent_loop.session.state import RequestParts
from agent_loop.vocabulary import JsonObject
from bash_exec.secrets import SecretRegistry


class Composer:
    """One per agent. `normalise` makes its history valid for a provider."""

    __slots__ = ("_logged", "_offered", "_rendered", "_scrub", "_secrets", "normalise")

    def __init__(self, *, scrub: Scrub, secrets: SecretRegistry) -> None:
        self.normalise = Normaliser()
        self._scrub = scrub
        self._secrets = secrets
        self._rendered: tuple[Sections, int, str | None] = ((), 0, None)
        self._offered: list[JsonObject] = []
        self._logged: list[JsonObject] | None = None  # equal to what is offered

    def system(self, sections: Sections) -> str | None:
        """The system prompt, without secrets."""
        before, forms, text = self._rendered
        if before != sections or forms != self._secrets.forms:
            text = self._secrets.redact_json(render(sections))
            self._rendered = sections, self._secrets.forms, text
        return text

    def header(self, request: LlmRequest, *, provider: str, last: RequestParts) -> JsonObject:
        """The data of its `request/header`: optional parts only where they differ from the `last` ones logged."""
        header: JsonObject = {
            "turn": request.turn,
            "step": request.step,
            "model": request.model,
            "provider": provider,
            "fingerprint": fingerprint(request, scrub=self._scrub),
        }
        parameters = request_parameters(request)
        # a part that was never logged reads as its empty value
        if (request.system or "") != (last.system or ""):
            header["system"] = request.system or ""
        if not self._are_logged(request.tools, last.tools):
            header["tools"] = request.tools
        if parameters != (last.parameters or {}):
            header["parameters"] = parameters
        return header

    def _are_logged(self, tools: list[JsonObject], logged: list[JsonObject] | None) -> bool:
        # a long comparison, of two lists that stay the same for most of a session
        if tools is self._offered and logged is self._logged:
            return True
        if tools != (logged or []):
            return False
        self._offered, self._logged = tools, logged
        return True
