"""Who may see the page: whoever has its address, from a browser that was given it, and no other site.

May not know: what is on the page. Invariant: nothing is answered without the token; nothing is read from a request
before that; what another site could make a browser send is refused; no answer is framed, cached, or runs foreign code.
"""

import hmac
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]

LOOPBACK: Final = "127.0.0.1"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def refusal(method: str, path: str, headers: Iterable[tuple[bytes, bytes]], *, token: str, port: int) -> int | None:
    """The status with which a request is refused; None when it may be answered. Names of headers are lower case."""
    given: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        given.setdefault(name, []).append(value)
    # a name that another site has pointed at this machine is none of these
    hosts = {f"{name}:{port}".encode() for name in (LOOPBACK, "localhost")}
    host = given.get(b"host", [])
    if len(host) != 1 or host[0] not in hosts:
        return 403
    # of what it takes to compare, the length of the token alone can be told
    first = path.removeprefix("/").partition("/")[0]
    if not hmac.compare_digest(first.encode("utf-8", "surrogateescape"), token.encode()):
        return 404
    if method in {"GET", "HEAD"}:
        return None
    own = [b"http://" + host[0]]
    foreign = given.get(b"origin") != own or given.get(b"sec-fetch-site", [b"same-origin"]) != [b"same-origin"]
    json = given.get(b"content-type", [b""])[0].partition(b";")[0] == b"application/json"
    if method != "POST" or foreign or not json:
        return 403
    return None


class Guard:
    """In front of `app`: refuses, takes the token out of the path, and adds the headers to every answer."""

    def __init__(self, app: App, *, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._port = port

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        status = refusal(scope["method"], scope["path"], scope["headers"], token=self._token, port=self._port)
        if status is not None:
            text = [(b"content-type", b"text/plain")]
            await send_guarded({"type": "http.response.start", "status": status, "headers": text})
            await send({"type": "http.response.body", "body": b"Not here.\n"})
            return
        path = scope["path"].removeprefix(f"/{self._token}") or "/"
        await self._app({**scope, "path": path, "raw_path": quote(path).encode()}, receive, send_guarded)
