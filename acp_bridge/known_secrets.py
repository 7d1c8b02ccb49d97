"""The secrets of this process as it starts (tools-and-bash.md §5).

May not know: who redacts with them. Invariant: every value that commands may not see is looked at, and every configured
key is registered, whatever it looks like.
"""

from collections.abc import Mapping
from typing import Any

from acp_bridge.config_file import allowed_variables, configured_keys, key_variables
from bash_exec.environment import secret_names
from bash_exec.secrets import SecretRegistry


def known_secrets(
    table: Mapping[str, Any], environment: Mapping[str, str], stored: Mapping[str, str]
) -> SecretRegistry:
    """The registry for a configuration `table`, the `environment` as it was before it was wiped, and `stored` keys."""
    secrets = SecretRegistry()
    sources = key_variables(table)
    keys = configured_keys(table)
    # first the keys: what else has the same value is known by the key's name
    for name in sources:
        secrets.add(name, environment.get(name, ""), configured=True)
    for provider, key in keys.items():
        secrets.add(f"providers.{provider}.key", key, configured=True)
    for provider, key in stored.items():
        secrets.add(f"credentials.{provider}", key, configured=True)
    hidden = secret_names(
        environment, key_sources=sources, allow=allowed_variables(table), keys=(*keys.values(), *stored.values())
    )
    for name in hidden:
        secrets.add(name, environment[name])
    return secrets
