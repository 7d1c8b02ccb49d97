"""`dsh-acp-agent ui`: from the words of the command line to a server that a person ends.

May not know: concrete stores and tools (the composition root hands them in). Invariant: it listens on this machine's
loopback address alone; the token is made anew for each run, and stands in no log and on no command line.
"""

import logging
import secrets
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import uvicorn

from acp_bridge.cli.parts import Streams
from acp_bridge.cli.sessions import sessions_root
from acp_bridge.config_file import Flags, read_config
from acp_bridge.settings import SettingsError
from acp_bridge.translate.v1.cards import FindTool
from acp_bridge.ui.access import LOOPBACK, Guard
from acp_bridge.ui.application import make_application
from acp_bridge.ui.arguments import PROGRAM, parse_arguments
from acp_bridge.ui.following import Sources
from agent_loop.runtime import Runtime
from agent_loop.session.layout import find_log
from agent_loop.session.store import SessionStore

TOKEN_BYTES: Final = 32
_MOST_CONNECTIONS: Final = 64
_END_SECONDS: Final = 2


def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    streams: Streams,
    *,
    open_store: Callable[[Path], SessionStore],
    find_tool: FindTool,
    runtime: Runtime,
    platform: str,
) -> int:
    """Serve until a signal ends it: Ctrl-C raises `KeyboardInterrupt`. Returns 1: it could not begin, or go on."""
    invocation = parse_arguments(argv)
    try:
        root = sessions_root(read_config(Flags(invocation.config), environment), environment)
        listener = socket.create_server((LOOPBACK, invocation.port))
    except SettingsError as error:
        streams.say(f"{PROGRAM}: {error}")
    except OSError as error:
        streams.say(f"{PROGRAM}: {error}; without --port it takes one that is free")
    else:

        def find(session_id: str) -> Path | None:
            return find_log(root, session_id, None) if session_id else None

        sources = Sources(open_store(root), find, find_tool, runtime)
        with listener, ExitStack() as at_end:
            token = secrets.token_urlsafe(TOKEN_BYTES)
            server = make_server(sources, token=token, port=listener.getsockname()[1], home=environment.get("HOME", ""))
            address = f"http://{LOOPBACK}:{listener.getsockname()[1]}/{token}/"
            streams.tell(f"The sessions of this machine: {address}")
            streams.tell("The address is a secret, and good until Ctrl-C.")
            streams.out.flush()
            if invocation.opens and has_display(environment, platform):
                folder = at_end.enter_context(tempfile.TemporaryDirectory(prefix="dsh-acp-agent-"))
                leads_there = opening_page(Path(folder), address).as_uri()
                # some browsers keep their caller until they end
                threading.Thread(target=webbrowser.open, args=(leads_there,), daemon=True).start()
            server.run(sockets=[listener])
    return 1


def make_server(sources: Sources, *, token: str, port: int, home: str) -> uvicorn.Server:
    """The server of the page; `home`: the directory that is written as `~`."""
    application = make_application(
        sources,
        short_path=lambda path: f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path,
        ended=lambda: server.should_exit,
    )
    # it writes addresses, and with them the token
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    server = uvicorn.Server(
        uvicorn.Config(
            Guard(application, token=token, port=port),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http="h11",
            loop="asyncio",
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_END_SECONDS,
        )
    )
    return server


def has_display(environment: Mapping[str, str], platform: str) -> bool:
    """Whether a browser could show something. `platform` as in `sys.platform`."""
    return platform == "darwin" or any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def opening_page(folder: Path, address: str) -> Path:
    """A private file that leads to `address`: on a browser's command line every user of the machine could read it."""
    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">\n', encoding="utf-8")
    return page
