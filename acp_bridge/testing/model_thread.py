"""The scripted model in a thread of its own, for a run that waits in another.

May not know: agents, scenarios. Invariant: when the block is left the server is closed and its thread has ended; a
script with a wrong answer fails there.
"""

import asyncio
import contextlib
import threading
from collections.abc import Generator, Mapping
from concurrent.futures import Future

from acp_bridge.testing.model_server import ModelServer, Script, model_server


@contextlib.contextmanager
def served(script: Script) -> Generator[ModelServer]:
    """Serve `script` on a free port of 127.0.0.1 while the block runs. Raises `ValueError` for a wrong script."""
    ready: Future[tuple[ModelServer, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        async with model_server(script) as server:
            ended = asyncio.Event()
            ready.set_result((server, asyncio.get_running_loop(), ended))
            await ended.wait()

    outcome: Future[None] = Future()

    def run() -> None:
        try:
            outcome.set_result(asyncio.run(serve()))
        except ValueError as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="scripted model")
    thread.start()
    server, loop, ended = ready.result()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
    outcome.result()


def addresses(url: str) -> Mapping[str, str]:
    """The variables that lead an agent to the model at `url` (contract snapshots.md §7)."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "local-model",
        "DEEPSEEK_BASE_URL": url,
        "DEEPSEEK_API_KEY": "local-model",
    }
