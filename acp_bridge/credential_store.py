"""Keys that `login` has stored: in the system keyring where one works, else in a private file (llm.md §5).

May not know: where else keys come from, people. Invariant: the file says for each provider where its key is, so that
whether there is one is known without the keyring; a key from the keyring is fetched once for each login.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from acp_bridge.credential_file import CredentialFile, CredentialStoreError, Entry


class KeyringFailure(Exception):
    """The keyring could not, or would not; the text says why and holds no key."""


class Keyring(ABC):
    """The system's keyring, one key for each provider."""

    @abstractmethod
    async def save(self, provider: str, key: str) -> None:
        """Keep `key`. Raises `KeyringFailure`."""

    @abstractmethod
    async def find(self, provider: str) -> str | None:
        """The key; None when there is none. Raises `KeyringFailure`."""

    @abstractmethod
    async def forget(self, provider: str) -> None:
        """Remove the key, if there is one. Raises `KeyringFailure`."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a key went, for people; `problem`: why it is not in the keyring that there is."""

    place: str
    problem: str | None = None


class CredentialStore:
    """`keyring` None: this installation has none."""

    def __init__(self, file: CredentialFile, keyring: Keyring | None = None) -> None:
        self.file = file
        self._keyring = keyring
        self._fetched: dict[str, str] = {}

    def entries(self) -> Mapping[str, Entry]:
        """What is stored, by provider, as the file says it now. Raises `CredentialStoreError`."""
        return self.file.read()

    async def find(self, provider: str) -> str | None:
        """The stored key of `provider`; None when there is none. Raises `CredentialStoreError`."""
        entry = self.entries().get(provider)
        if entry is None or entry.ticket is None:
            return entry and entry.key
        if entry.ticket not in self._fetched:
            self._fetched[entry.ticket] = await self._fetch(provider)
        return self._fetched[entry.ticket]

    async def save(self, provider: str, key: str) -> Kept:
        """Keep `key` in place of an older one. Raises `CredentialStoreError`."""
        entry, kept = Entry(key=key), Kept(self.file.path)
        if self._keyring is not None:
            try:
                await self._keyring.save(provider, key)
                # some backends take everything and keep nothing
                if await self._keyring.find(provider) != key:
                    raise KeyringFailure("it did not keep the key")
                entry, kept = Entry(ticket=os.urandom(8).hex()), Kept("the system keyring")
            except KeyringFailure as error:
                kept = Kept(self.file.path, str(error))
        self.file.change(lambda entries: {**entries, provider: entry})
        return kept

    async def forget(self, provider: str) -> bool:
        """Remove a stored key; False when there was none. Raises `CredentialStoreError`; then the entry stays."""
        entry = self.entries().get(provider)
        if entry is None:
            return False
        if entry.ticket is not None and self._keyring is not None:
            try:
                await self._keyring.forget(provider)
            except KeyringFailure as error:
                raise CredentialStoreError(
                    f"the system keyring did not remove the key of {provider}: {error}"
                ) from error
        self.file.change(lambda entries: {name: kept for name, kept in entries.items() if name != provider})
        return True

    async def _fetch(self, provider: str) -> str:
        why = "the Python package `keyring` is missing"
        if self._keyring is not None:
            try:
                if key := await self._keyring.find(provider):
                    return key
                why = "it is not there any more"
            except KeyringFailure as error:
                why = str(error)
        raise CredentialStoreError(f"the key of {provider} cannot be read from the system keyring: {why}; log in again")
