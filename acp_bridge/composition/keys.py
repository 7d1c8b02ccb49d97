"""The keys of every provider, wired to where they come from.

May not know: models, people. Invariant: a replay opens neither the file of stored keys nor the keyring.
"""

from collections.abc import Iterable, Mapping

from acp_bridge.composition.start import Start
from acp_bridge.config_file import DEEPSEEK, DEEPSEEK_KEY
from acp_bridge.credential_file import CredentialFile, credentials_path
from acp_bridge.credential_store import CredentialStore
from acp_bridge.credentials import Credentials
from acp_bridge.keyring_program import keyring_here


def make_credentials(start: Start, *, replaying: bool) -> Credentials:
    """Where each provider's key is found."""
    providers = start.settings.config.providers
    variables = {name: row.key_variable for name, row in providers.items()} | {DEEPSEEK: DEEPSEEK_KEY}
    return Credentials(
        variables=variables,
        environment=start.environment,
        configured={name: row.key.get_secret_value() for name, row in providers.items() if row.key},
        store=None if replaying else open_store(start.environment, start.key_variables),
        secrets=start.secrets,
    )


def open_store(environment: Mapping[str, str], key_variables: Iterable[str]) -> CredentialStore:
    """The file, and the system keyring where this installation has the package for it."""
    return CredentialStore(CredentialFile(credentials_path()), keyring_here(environment, key_variables))
