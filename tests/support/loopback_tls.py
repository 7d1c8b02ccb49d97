"""A TLS server's certificate for this machine, and who trusts it. The key is made for these tests and opens nothing."""

import ssl
import tempfile
from pathlib import Path

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIULmWAJwX8ac7Cvd/+/XeL2lg4c+wwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDE4MDM0MVoYDzIxMjYxMTA2
MTgwMzQxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAT8zIXvsBefsgbBZ3WOcZA6WCQ6zdQaVMVSAScWEbHc4Oi7wqHHsEh6
kL/plNzEfuJtqNU2QYHnpfnEY6j1zfNjo28wbTAdBgNVHQ4EFgQUj46GymHErlPl
A3t/2P9/Okmn0FkwHwYDVR0jBBgwFoAUj46GymHErlPlA3t/2P9/Okmn0FkwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDRwAwRAIgd1JQpLuOlb0aQnnGE0c1gOjoREMg+auB/W5vW/6R2sICIAgj
iH7eP6sqRiNjeesXlq0LLoQP7AOqxjUzdFyC6yFf
-----END CERTIFICATE-----
"""
_KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOV4+2s1fk2c9dbZe
6KxVc/F+nwOMFobGok38JWlbfBihRANCAAT8zIXvsBefsgbBZ3WOcZA6WCQ6zdQa
VMVSAScWEbHc4Oi7wqHHsEh6kL/plNzEfuJtqNU2QYHnpfnEY6j1zfNj
-----END PRIVATE KEY-----
"""


def server_context() -> ssl.SSLContext:
    """Shows the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "both.pem")
        file.write_text(_KEY + CERTIFICATE)
        context.load_cert_chain(file)
    return context


def client_context() -> ssl.SSLContext:
    """Trusts it."""
    return ssl.create_default_context(cadata=CERTIFICATE)
