"""The file in which `login` keeps keys: `credentials.json` in the user's configuration directory (llm.md §5).

May not know: providers' settings, keyrings' ways. Invariant: the file is 0600 in a 0700 directory, is replaced whole or
not at all, and no key shows in a repr or in an error.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from acp_bridge.config_file import APP
from acp_bridge.private_file import only_writer, replace_file

_VERSION = 1


class CredentialStoreError(Exception):
    """The stored keys cannot be read or changed; the text names the file or the keyring, and the fix."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a provider's key is: `key` itself, or in the system keyring as what login number `ticket` left there."""

    key: str | None = field(default=None, repr=False)
    ticket: str | None = None


def credentials_path() -> str:
    """Beside `config.toml` in the platform's user configuration directory, which the sandbox hides from commands."""
    import platformdirs  # noqa: PLC0415 - 10 ms that a replay need not pay

    return os.path.join(platformdirs.user_config_dir(APP), "credentials.json")


class CredentialFile:
    """The entries of `path`, by provider; an absent file holds none."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self) -> dict[str, Entry]:
        """Every entry. Raises `CredentialStoreError` when the file is there and cannot be understood."""
        try:
            with open(self.path, "rb") as file:
                loaded: object = json.loads(file.read())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise CredentialStoreError(f"the stored keys cannot be read: {self.path}: {error.strerror}") from error
        except ValueError:
            loaded = None  # not chained: the text of the error may quote a key
        table = cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else {}
        rows: object = table.get("providers")
        if table.get("version") != _VERSION or not isinstance(rows, dict):
            raise CredentialStoreError(
                f"the stored keys cannot be read: {self.path} is damaged; remove it and log in again"
            )
        return {name: entry for name, row in cast("dict[str, Any]", rows).items() if (entry := _entry(row))}

    def change(self, changed: Callable[[dict[str, Entry]], Mapping[str, Entry]]) -> None:
        """Write what `changed` makes of the entries. Raises `CredentialStoreError`; then nothing has changed."""
        folder = os.path.dirname(self.path)
        try:
            with only_writer(folder):
                self._write(changed(self.read()))
        except OSError as error:
            raise CredentialStoreError(f"the stored keys cannot be written: {self.path}: {error.strerror}") from error

    def _write(self, entries: Mapping[str, Entry]) -> None:
        rows = {
            name: {"key": entry.key} if entry.ticket is None else {"keyring": entry.ticket}
            for name, entry in entries.items()
        }
        replace_file(self.path, json.dumps({"version": _VERSION, "providers": rows}, indent=2) + "\n")


def stored_entries(environment: Mapping[str, str]) -> dict[str, Entry]:
    """What `login` stored, by provider: nothing in a replay. A file that cannot be read is met when it is needed."""
    if environment.get("DSH_SNAPSHOT") == "replay":
        return {}
    try:
        return CredentialFile(credentials_path()).read()
    except CredentialStoreError:
        return {}


def stored_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """The keys that stand in the file itself, by provider."""
    entries = stored_entries(environment)
    return {provider: entry.key for provider, entry in entries.items() if entry.key is not None}


def _entry(row: object) -> Entry | None:
    fields = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
    key, ticket = fields.get("key"), fields.get("keyring")
    if isinstance(key, str) and key:
        return Entry(key=key)
    return Entry(ticket=ticket) if isinstance(ticket, str) else None
