"""Does an endpoint take a key? Asked with the cheapest request that tells (llm.md §5).

May not know: where the key comes from, people. Invariant: at most three requests, of which one costs a token at most;
only an answer that depends on the key decides.
"""

from collections.abc import Mapping

import anyio
from pydantic_core import to_json

from agent_loop.errors import LlmError
from agent_loop.llm.key_verdict import KeyVerdict
from agent_loop.llm.openai_compat.failures import http_failure
from agent_loop.llm.openai_compat.models import DEEPSEEK, ProviderProfile
from agent_loop.llm.openai_compat.seam import HttpResponse, HttpTransport

CHECK_SECONDS = 20.0
_MAX_BODY = 64 * 1024
_REFUSED = (401, 403)
# the key is the right one, whatever else is wrong with the account
_RIGHT_ALL_THE_SAME = ("QUOTA", "RATE_LIMIT")


async def check_key(
    provider: ProviderProfile, key: str, transport: HttpTransport, *, seconds: float = CHECK_SECONDS
) -> KeyVerdict:
    """Ask the endpoint of `provider`. Never raises for what the network or the endpoint does."""
    try:
        with anyio.fail_after(seconds):
            return await _asked(provider, key, transport)
    except TimeoutError:
        return KeyVerdict("unknown", f"{provider.name} did not answer within {seconds:g} s")
    except LlmError as error:
        return KeyVerdict("unknown", error.message)


async def _asked(provider: ProviderProfile, key: str, transport: HttpTransport) -> KeyVerdict:
    address = provider.base_url.rstrip("/")
    headers = {"authorization": f"Bearer {key}", "user-agent": "dsh-acp-agent", "accept": "application/json"}
    keyless = {name: value for name, value in headers.items() if name != "authorization"}
    status, body = await _answer(await transport.get(f"{address}/models", headers=headers))
    if status in _REFUSED:
        return KeyVerdict("rejected", http_failure(provider.name, status, body).message)
    # a list that everybody may read tells nothing about the key; DeepSeek's is known to want one
    if 200 <= status <= 299 and (
        provider.name == DEEPSEEK.name or await _is_refused(transport, f"{address}/models", keyless)
    ):
        return KeyVerdict("accepted", f"{provider.name} accepts the key")
    return await _chat(provider, f"{address}/chat/completions", headers, transport)


async def _is_refused(transport: HttpTransport, url: str, headers: Mapping[str, str]) -> bool:
    status, _body = await _answer(await transport.get(url, headers=headers))
    return status in _REFUSED


async def _chat(
    provider: ProviderProfile, url: str, headers: Mapping[str, str], transport: HttpTransport
) -> KeyVerdict:
    body = to_json(
        {
            "model": provider.models[0].id,
            "messages": [{"role": "user", "content": "hi"}],
            "max_tokens": 1,
            "stream": False,
        }
    )
    response = await transport.post(url, headers={**headers, "content-type": "application/json"}, body=body)
    status, answer = await _answer(response)
    if 200 <= status <= 299:
        return KeyVerdict("accepted", f"{provider.name} accepts the key")
    failure = http_failure(provider.name, status, answer)
    if failure.code == "AUTH":
        return KeyVerdict("rejected", failure.message)
    if failure.code in _RIGHT_ALL_THE_SAME:
        return KeyVerdict("accepted", f"{provider.name} knows the key, but: {failure.message}")
    return KeyVerdict("unknown", failure.message)


async def _answer(response: HttpResponse) -> tuple[int, bytes]:
    """Status and body, the latter as far as anybody reads it."""
    body = b""
    try:
        while len(body) < _MAX_BODY and (data := await response.read()):
            body += data
    finally:
        await response.aclose()
    return response.status, body
