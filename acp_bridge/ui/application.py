"""The page's server, as an application: which address answers what.

May not know: sockets, who may ask (`access`). Invariant: it reads logs and passes command lines on; it changes nothing
itself.
"""

import json
from collections.abc import Callable, Mapping

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from acp_bridge.owner.asking import ask
from acp_bridge.owner.protocol import MAX_REQUEST, ProtocolError, parse_request
from acp_bridge.ui.following import Sources, session_frames
from acp_bridge.ui.pages import list_page, resource, session_page, transcript_style
from agent_loop.session.layout import lock_path
from agent_loop.session.store import SessionStoreError


def make_application(sources: Sources, *, short_path: Callable[[str], str], ended: Callable[[], bool]) -> Starlette:
    """`ended`: the server is about to stop, so streams end."""

    async def show_list(request: Request) -> Response:
        page = request.query_params.get("page", "")
        try:
            rows = await sources.store.list()
        except SessionStoreError as error:
            return PlainTextResponse(error.message, 500)
        number = int(page) if page.isascii() and page.isdigit() and len(page) < 10 else 1
        return HTMLResponse(list_page(rows, number, now_ms=sources.runtime.now_ms(), short_path=short_path))

    async def show_session(request: Request) -> Response:
        session_id: str = request.path_params["session_id"]
        try:
            title = next((row.title for row in await sources.store.list() if row.id == session_id), None)
            stored = sources.find_log(session_id) is not None
        except (SessionStoreError, OSError) as error:
            return PlainTextResponse(str(error), 500)
        if not stored:
            return PlainTextResponse("No such session is stored.", 404)
        return HTMLResponse(session_page(session_id, title))

    async def stream(request: Request) -> Response:
        frames = session_frames(sources, request.path_params["session_id"], ended=ended)
        return StreamingResponse(frames, media_type="text/event-stream")

    async def execute(request: Request) -> Response:
        session_id: str = request.path_params["session_id"]
        try:
            line = await _line(request)
            command = parse_request(json.dumps({"sessionId": session_id, "line": line}).encode())
        except ProtocolError as error:
            return JSONResponse({"ok": False, "text": str(error)})
        path = sources.find_log(session_id)
        if path is None:
            return JSONResponse({"ok": False, "text": "No such session is stored."})
        answer = await ask(lock_path(path), command)
        return JSONResponse({"ok": answer.ok, "text": answer.text})

    return Starlette(
        routes=[
            Route("/", show_list),
            Route("/session/{session_id:path}", show_session),
            Route("/events/{session_id:path}", stream),
            Route("/execute/{session_id:path}", execute, methods=["POST"]),
            *(Route(f"/{name}", _serve(text, media)) for name, (text, media) in _resources().items()),
        ]
    )


def _resources() -> Mapping[str, tuple[str, str]]:
    return {
        "transcript.css": (transcript_style(), "text/css"),
        "page.css": (resource("page.css"), "text/css"),
        "page.js": (resource("page.js"), "text/javascript"),
        "loops.js": (resource("loops.js"), "text/javascript"),
        "icon.svg": (resource("icon.svg"), "image/svg+xml"),
    }


def _serve(text: str, media: str) -> Callable[[Request], Response]:
    def serve(_request: Request) -> Response:
        return Response(text, media_type=media)

    return serve


async def _line(request: Request) -> str:
    """Raises `ProtocolError`."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_REQUEST:
            raise ProtocolError("the request is too long")
    try:
        return str(json.loads(bytes(body))["line"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ProtocolError("that is no command line") from error
