"""The error families of the agent.

May not know: any provider, any protocol. Invariant: a boundary error names what failed and the fix, carries a
symbolic `code` (stable, upper case) and was raised `from` its cause; no text in it ever contains a key.
"""


class HarnessError(Exception):
    """A failure at a boundary of the agent (contract llm.md §4).

    `message` is a whole readable sentence, `code` a stable symbol such as `"AUTH"`.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class LlmError(HarnessError):
    """A model call that failed. `status` is the HTTP status, `retry_after` the provider's ask in seconds."""

    def __init__(self, message: str, code: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, code)
        self.status = status
        self.retry_after = retry_after


class AgentDisposedError(HarnessError):
    """Something was sent to an agent that has been disposed."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"agent {agent_id} has been disposed", "AGENT_DISPOSED")


class DuplicateError(HarnessError):
    """An id or a name was registered twice."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"{what} {name!r} exists already", "DUPLICATE")
