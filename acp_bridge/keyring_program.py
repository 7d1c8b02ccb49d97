"""The system keyring, through the command line of the Python package `keyring`, in a process of its own (llm.md §5).

May not know: providers, people. Invariants: the agent never loads a keyring's libraries, waits for one no longer than
`seconds` (a locked keyring asks a person) and survives whatever one does; the key goes through pipes, not through an
argument list.
"""

import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec

import anyio

from acp_bridge.config_file import APP
from acp_bridge.credential_store import Keyring, KeyringFailure
from bash_exec.environment import secret_names

_MAX_REASON = 200


def keyring_here(environment: Mapping[str, str], key_variables: Iterable[str]) -> "KeyringProgram | None":
    """The keyring where this installation has the package; of the secrets in `environment` it gets only its own."""
    if find_spec("keyring") is None:
        return None
    hidden = {name for name in secret_names(environment, key_sources=key_variables) if "KEYRING" not in name}
    return KeyringProgram({name: value for name, value in environment.items() if name not in hidden})


class KeyringProgram(Keyring):
    """`environment` is that of the process; it should hold no key. `seconds` is the limit of each call."""

    def __init__(self, environment: Mapping[str, str], *, seconds: float = 60.0) -> None:
        self._environment = dict(environment)
        self._seconds = seconds

    async def save(self, provider: str, key: str) -> None:
        code, _out, reason = await self._run("set", provider, key)
        if code != 0:
            raise KeyringFailure(reason)

    async def find(self, provider: str) -> str | None:
        code, out, reason = await self._run("get", provider)
        if code != 0 and reason:
            raise KeyringFailure(reason)
        return out.rstrip("\n") or None

    async def forget(self, provider: str) -> None:
        code, _out, reason = await self._run("del", provider)
        # a key that was gone before is an error there
        if code != 0 and await self.find(provider) is not None:
            raise KeyringFailure(reason)

    async def _run(self, operation: str, provider: str, key: str = "") -> tuple[int, str, str]:
        """(exit code, standard output, the last line of standard error)."""
        # -P: nothing of the directory that we were started in is imported
        command = [sys.executable, "-P", "-m", "keyring", operation, APP, provider]
        try:
            with anyio.fail_after(self._seconds):
                done = await anyio.run_process(
                    command, input=key.encode(), check=False, env=self._environment, cwd="/", start_new_session=True
                )
        except TimeoutError:
            raise KeyringFailure(f"it did not answer within {self._seconds:g} s") from None
        except OSError as error:
            raise KeyringFailure(f"{sys.executable} cannot be started: {error.strerror}") from error
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return done.returncode, done.stdout.decode(errors="replace"), _sentence(said[-1]) if said else ""


def _sentence(line: str) -> str:
    """The first sentence of a traceback's last line."""
    return line.removeprefix("keyring.errors.").partition(". ")[0][:_MAX_REASON]
