"""Refusals as errors (contract llm.md §5)."""

import json

import pytest

from agent_loop.llm.openai_compat.failures import http_failure, plain_answer, stream_failure


def body(message):
    return json.dumps({"error": {"message": message, "type": "x"}}).encode()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "INVALID_REQUEST"),
        (401, "AUTH"),
        (402, "QUOTA"),
        (403, "AUTH"),
        (404, "HTTP_404"),
        (301, "HTTP_301"),
        (422, "HTTP_422"),
        (429, "RATE_LIMIT"),
        (500, "SERVER"),
        (503, "SERVER"),
        (529, "SERVER"),
    ],
)
def test_a_status_has_its_code_and_is_named(status, code):
    error = http_failure("deepseek", status, body("because"), retry_after=2.0)
    assert (error.code, error.status, error.retry_after) == (code, status, 2.0)
    assert error.message.startswith("deepseek ")
    assert error.message.endswith(f"(HTTP {status}): because")


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 131072 tokens.",
        "context_length_exceeded",
        "the request exceeds the available context size",
        "Prompt is too long",
    ],
)
def test_a_context_overflow_is_recognised_by_its_words(words):
    error = http_failure("deepseek", 400, body(words))
    assert error.code == "CONTEXT_OVERFLOW"
    assert "longer than the model's context" in error.message


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        (b'{"error":"text"}', ": text"),
        (b'{"message":"top"}', ": top"),
        (b'{"detail":"d"}', ": d"),
        (b'"bare"', ": bare"),
        (b"<html>\n  Bad   Gateway\xff", ": <html> Bad Gateway\ufffd"),
        (b"[1]", ""),
        (b"{}", ""),
        (b'{"error":{"message":5}}', ""),
        (b"", ""),
    ],
)
def test_any_body_gives_a_readable_sentence(raw, detail):
    assert http_failure("ollama", 502, raw).message == f"ollama failed (HTTP 502){detail}"


def test_a_long_explanation_is_cut():
    message = http_failure("ollama", 500, b"x" * 5000).message
    assert len(message) < 1100
    assert message.endswith("x…")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"message": "m", "code": 429}, "RATE_LIMIT"),
        ({"message": "maximum context length", "code": 400}, "CONTEXT_OVERFLOW"),
        ({"message": "m", "code": 200}, "SERVER"),
        ({"message": "m", "type": "rate_limit_error"}, "RATE_LIMIT"),
        ({"message": "m", "code": "insufficient_quota"}, "QUOTA"),
        ({"message": "m", "code": "context_length_exceeded"}, "CONTEXT_OVERFLOW"),
        ({"message": "m", "type": "authentication_error"}, "AUTH"),
        ({"message": "m", "type": "invalid_request_error"}, "INVALID_REQUEST"),
        ({"message": "m", "type": "server_error"}, "SERVER"),
        ([], "SERVER"),
    ],
)
def test_an_error_in_a_stream_has_the_code_that_its_symbols_say(error, code):
    assert stream_failure("openrouter", error).code == code


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b'{"error":{"message":"m","code":429}}', "RATE_LIMIT"),
        (b'{"choices":[]}', "MALFORMED_RESPONSE"),
        (b"[]", "MALFORMED_RESPONSE"),
        (b"{", "MALFORMED_RESPONSE"),
    ],
)
def test_json_instead_of_a_stream_is_its_error_or_a_malformed_response(raw, code):
    assert plain_answer("openrouter", raw).code == code
