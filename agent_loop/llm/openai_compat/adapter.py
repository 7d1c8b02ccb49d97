"""The adapter for DeepSeek and every OpenAI-compatible endpoint (contract llm.md §5).

May not know: sessions, tools, which HTTP library is used. Invariant: the key is looked up for each call, stands in no
message, and is kept nowhere; an abort ends the stream at once and closes its connection.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

import anyio
import anyio.to_thread
from pydantic_core import from_json

from agent_loop.errors import LlmError
from agent_loop.llm.interruptible import Interruptible
from agent_loop.llm.openai_compat.failures import http_failure, plain_answer
from agent_loop.llm.openai_compat.images import image_urls
from agent_loop.llm.openai_compat.models import ProviderProfile
from agent_loop.llm.openai_compat.seam import HttpResponse, HttpTransport
from agent_loop.llm.openai_compat.serialize import RequestWriter
from agent_loop.llm.openai_compat.sse import SseEvent, SseParser
from agent_loop.llm.openai_compat.translate import StreamTranslator
from agent_loop.llm.retry import parse_retry_after
from agent_loop.llm.seam import LlmAdapter, LlmRequest
from agent_loop.runtime import Runtime
from agent_loop.vocabulary import StreamChunk

_MAX_ERROR_BODY = 64 * 1024
_REST_SECONDS = 0.25  # for the end of the body behind [DONE]
_CLOSE_SECONDS = 2.0


class OpenAICompatAdapter(LlmAdapter):
    """One provider.

    `credential` gives the key or None, or raises `LlmError`; `idle_timeout` is the longest silence in seconds, reset by
    any byte; `transport` replaces the real HTTP.
    """

    def __init__(
        self,
        provider: ProviderProfile,
        *,
        credential: Callable[[], Awaitable[str | None]],
        runtime: Runtime,
        idle_timeout: float = 300.0,
        transport: HttpTransport | None = None,
    ) -> None:
        self._provider = provider
        self._credential = credential
        self._runtime = runtime
        self._idle_timeout = idle_timeout
        self._transport = transport
        self._writer = RequestWriter()
        self._making = anyio.Lock(fast_acquire=True)

    async def stream(self, request: LlmRequest) -> AsyncGenerator[StreamChunk]:
        """One answer; see `LlmAdapter.stream`. Errors carry the codes of contract §5."""
        key = ""
        try:
            with Interruptible(request.signal, seconds=self._idle_timeout) as call:

                async def ask() -> HttpResponse:
                    nonlocal key
                    key = (await self._credential() or "").strip()
                    return await self._post(request, key)

                response = await call.wait(ask)
                try:
                    await self._check_head(response, call)
                    parser = SseParser()
                    translator = StreamTranslator(self._provider.name)
                    while True:
                        data = await call.wait_for(response.read, response.interrupt)
                        for event, payload in parser.feed(data) if data else _last_events(parser):
                            chunks = translator.feed(event, payload)
                            if translator.done and not response.ended:
                                # so that the connection can serve the next step; not at any price
                                await _read_the_rest(response)
                            for chunk in chunks:
                                call.check()
                                yield chunk
                            if translator.done:
                                return
                        if not data:
                            raise LlmError(f"{self._provider.name} ended its stream in mid-answer", "STREAM_CLOSED")
                finally:
                    if not response.give_back():
                        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                            await response.aclose()
        except TimeoutError:
            raise LlmError(f"{self._provider.name} sent nothing for {self._idle_timeout:g} s", "TIMEOUT") from None
        except LlmError as error:
            if key and key in error.message:
                # the original is not chained: its text, or its cause's, may hold the key
                raise _without_key(error, key) from None
            raise

    def prepare(self) -> None:
        """Load now, on this thread, what the first call would have to load: for a moment in which nobody waits.

        What goes wrong here is met again, and told, by the first call.
        """
        if self._transport is None:
            with suppress(LlmError):
                self._transport = _load_transport(self._provider.base_url)

    async def aclose(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _post(self, request: LlmRequest, key: str) -> HttpResponse:
        profile = self._provider.model(request.model)
        if profile is None:
            raise LlmError(f"{self._provider.name} has no model {request.model!r}", "UNKNOWN_MODEL")
        headers = self._headers(key)
        urls = await image_urls(request) if profile.images else None
        body = self._writer.write(request, profile, urls)
        url = self._provider.base_url.rstrip("/") + "/chat/completions"
        transport = await self._connections()
        return await transport.post(url, headers=headers, body=body)

    def _headers(self, key: str) -> dict[str, str]:
        headers = {
            "accept": "text/event-stream",
            # compressed events would wait in the compressor
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "dsh-acp-agent",
        }
        if key:
            if not (key.isascii() and key.isprintable()):
                raise LlmError(
                    f"the key for {self._provider.name} holds a character that no key has; set it again", "AUTH"
                )
            headers["authorization"] = f"Bearer {key}"
        elif self._provider.key_variable is not None:
            raise LlmError(
                f"no key for {self._provider.name}: set {self._provider.key_variable} in the agent's environment",
                "NO_CREDENTIAL",
            )
        return headers

    async def _connections(self) -> HttpTransport:
        # the client library and the trust store take long to load: by the first request, and beside the event loop
        async with self._making:
            if self._transport is None:
                self._transport = await anyio.to_thread.run_sync(_load_transport, self._provider.base_url)
            return self._transport

    async def _check_head(self, response: HttpResponse, call: Interruptible) -> None:
        """Raise for what is no stream: a refusal, or a plain JSON answer."""
        name, status = self._provider.name, response.status
        if not 200 <= status <= 299:
            asked = response.headers.get("retry-after")
            retry_after = None if asked is None else parse_retry_after(asked, now_ms=self._runtime.now_ms())
            raise http_failure(name, status, await self._error_body(response, call), retry_after=retry_after)
        if response.headers.get("content-type", "").startswith("application/json"):
            raise plain_answer(name, await self._error_body(response, call))

    async def _error_body(self, response: HttpResponse, call: Interruptible) -> bytes:
        body = b""
        while len(body) < _MAX_ERROR_BODY:
            try:
                data = await call.wait(response.read)
            except (LlmError, TimeoutError):
                call.check()
                # the status says enough where its explanation broke off
                break
            if not data:
                break
            body += data
        return body


async def _read_the_rest(response: HttpResponse) -> None:
    # the answer is complete; a connection that breaks now is no failure of it
    with anyio.move_on_after(_REST_SECONDS), suppress(LlmError):
        more = True
        while more:
            more = bool(await response.read())


def _load_transport(base_url: str) -> HttpTransport:
    from agent_loop.llm.openai_compat.http import TcpTransport  # noqa: PLC0415 - not at start, and not on the loop

    return TcpTransport(base_url)


def _last_events(parser: SseParser) -> list[SseEvent]:
    """What a stream left without a final blank line: whole payloads count, half a one was cut."""
    return [(event, data) for event, data in parser.close() if data.strip() == b"[DONE]" or _is_json(data)]


def _is_json(data: bytes) -> bool:
    try:
        from_json(data)
    except ValueError:
        return False
    return True


def _without_key(error: LlmError, key: str) -> LlmError:
    message = error.message.replace(key, "[key]")
    return LlmError(message, error.code, status=error.status, retry_after=error.retry_after)
