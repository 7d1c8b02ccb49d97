"""The error families."""

from agent_loop.errors import AgentDisposedError, DuplicateError, HarnessError, LlmError


def test_an_error_is_a_sentence_and_a_code():
    error = HarnessError("the thing broke; mend it", "BROKEN")
    assert (str(error), error.message, error.code) == ("the thing broke; mend it", "the thing broke; mend it", "BROKEN")


def test_a_model_error_carries_the_facts_of_http():
    error = LlmError("too many requests", "RATE_LIMIT", status=429, retry_after=2.5)
    assert (error.code, error.status, error.retry_after) == ("RATE_LIMIT", 429, 2.5)
    assert LlmError("x", "Y").status is None


def test_the_named_errors_name_their_subject():
    assert "a-1" in str(AgentDisposedError("a-1"))
    assert AgentDisposedError("a-1").code == "AGENT_DISPOSED"
    assert str(DuplicateError("tool", "bash")) == "tool 'bash' exists already"
