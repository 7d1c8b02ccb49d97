"""Where the providers' keys come from: the environment, what `login` stored, the configuration (llm.md §5, acp.md §2).

May not know: HTTP, ACP. Invariants: a key is looked up anew for each call, is known to redaction before anybody has it,
and shows in no repr; after `sign_out` only what is stored from then on counts, until `look_again`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from acp_bridge.config_file import login_command
from acp_bridge.credential_file import CredentialStoreError
from acp_bridge.credential_store import CredentialStore
from agent_loop.errors import LlmError
from bash_exec.environment import close_memory
from bash_exec.secrets import SecretRegistry


@dataclass(slots=True)
class Credentials:
    """`variables`: the variable of each provider's key; a provider without one needs no key.

    `environment` is the environment as it was at start (the process's own was wiped), `configured` the keys that stand
    in the configuration, by provider. `store` None: a replay, in which no key is read, and none is missing until
    somebody signs out.
    """

    variables: Mapping[str, str | None]
    environment: Mapping[str, str] = field(repr=False)
    configured: Mapping[str, str] = field(repr=False)
    store: CredentialStore | None
    secrets: SecretRegistry = field(repr=False)
    _signed_out: bool = field(default=False, init=False)
    _protected: set[str] = field(default_factory=set[str], init=False, repr=False)

    async def key(self, provider: str) -> str | None:
        """The key of `provider`; None when there is none. Raises `LlmError` (`NO_CREDENTIAL`): it cannot be read."""
        if self.store is None:
            return None
        if given := self._in_environment(provider):
            return given
        try:
            stored = await self.store.find(provider)
        except CredentialStoreError as error:
            raise LlmError(str(error), "NO_CREDENTIAL") from error
        if stored:
            self._protect(provider, stored)
        return stored or self._in_configuration(provider)

    def missing(self, provider: str) -> str | None:
        """The fix when a key is needed and there is none; None when the provider can be used."""
        variable = self.variables.get(provider)
        if variable is None or self._in_environment(provider) or self._in_configuration(provider):
            return None
        if self.store is None:
            found = not self._signed_out
        else:
            try:
                found = provider in self.store.entries()
            except CredentialStoreError as error:
                return str(error)
        if found:
            return None
        login = f"run `{login_command(provider)}` in a terminal"
        if self._signed_out:
            return f"you have signed out; {login}, or sign in again from your editor"
        return f"{login}, or set {variable} in the environment that your editor gives to the agent and restart it"

    async def sign_out(self) -> None:
        """Remove every stored key, and ignore those from elsewhere. Raises `CredentialStoreError` when one stays."""
        self._signed_out = True
        if self.store is not None:
            for provider in self.store.entries():
                await self.store.forget(provider)

    def look_again(self) -> None:
        """From now on every source counts."""
        self._signed_out = False

    def _in_environment(self, provider: str) -> str | None:
        variable = self.variables.get(provider)
        return None if variable is None or self._signed_out else self.environment.get(variable, "").strip()

    def _in_configuration(self, provider: str) -> str | None:
        return None if self._signed_out else self.configured.get(provider)

    def _protect(self, provider: str, key: str) -> None:
        if key not in self._protected:
            self._protected.add(key)
            self.secrets.add(f"credentials.{provider}", key, configured=True)
            close_memory()
