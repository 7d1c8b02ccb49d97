"""A web server over TLS that answers every request with 401, as a git host does to somebody it does not know."""

import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import anyio.streams.tls

_REFUSAL = b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="git"\r\nContent-Length: 0\r\n\r\n'


def _certificate(folder: Path) -> ssl.SSLContext:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    argv += ["-days", "1", "-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(argv, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@asynccontextmanager
async def refusing_server(folder: Path) -> AsyncIterator[str]:
    """Yields its address, `https://127.0.0.1:PORT`. Files of its own are written to `folder`. Needs openssl."""
    context = _certificate(folder)

    async def serve(connection: anyio.abc.SocketStream) -> None:
        try:
            stream = await anyio.streams.tls.TLSStream.wrap(connection, server_side=True, ssl_context=context)
            while True:
                await stream.receive()
                await stream.send(_REFUSAL)
        except (anyio.EndOfStream, anyio.BrokenResourceError, ssl.SSLError):
            await anyio.aclose_forcefully(connection)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        (port,) = {each.extra_attributes[anyio.abc.SocketAttribute.local_port]() for each in listener.listeners}
        yield f"https://127.0.0.1:{port}"
        group.cancel_scope.cancel()
