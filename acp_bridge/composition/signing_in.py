"""`dsh-acp-agent login` and `logout`, made and wired.

May not know: how a person is asked. Invariant: of the configuration only what says which providers there are is read: a
mistake elsewhere keeps nobody from signing in.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from getpass import getpass
from typing import assert_never

from acp_bridge.cli.login import NOT_UNDERSTOOD, Account, Desk, log_in, log_out, show
from acp_bridge.cli.login_arguments import parse_login, parse_logout
from acp_bridge.cli.parts import Streams
from acp_bridge.composition.keys import open_store
from acp_bridge.composition.models import all_providers
from acp_bridge.config_file import (
    Flags,
    RawConfig,
    chosen_provider,
    configured_keys,
    key_variables,
    read_config,
)
from acp_bridge.credential_file import stored_keys
from acp_bridge.known_secrets import known_secrets
from acp_bridge.settings import SettingsError, load_settings
from agent_loop.errors import LlmError
from agent_loop.llm.key_verdict import KeyVerdict
from agent_loop.llm.openai_compat.key_check import check_key
from agent_loop.llm.openai_compat.models import ProviderProfile

_READ = ("model", "providers")
_VARIABLES = ("DEEPSEEK_BASE_URL", "DSH_MODEL")


def sign_in_or_out(word: str, flags: Flags, argv: list[str], environment: Mapping[str, str]) -> int:
    """Carry out `word` (login, logout) with what follows it. Returns the exit code. Raises `SystemExit` for usage."""
    command = parse_login(argv) if word == "login" else parse_logout(argv)
    if command.config:
        flags = flags._replace(config=command.config)
    streams = Streams.standard()
    raw = read_config(flags, environment)
    secrets = known_secrets(raw.table, environment, stored_keys(environment))
    try:
        profiles = _profiles(raw, flags, environment)
        chosen = command.provider or chosen_provider(raw.table, flags, environment)
        if chosen not in profiles:
            raise SettingsError(f"there is no provider {chosen!r:.60}; the configuration knows {', '.join(profiles)}")
    except SettingsError as error:
        streams.say(secrets.redact(str(error)))
        return NOT_UNDERSTOOD
    desk = Desk(
        streams=streams,
        store=open_store(environment, key_variables(raw.table)),
        secrets=secrets,
        environment=environment,
        ask=getpass if sys.stdin is not None and sys.stdin.isatty() else None,
        check=_checking(profiles[chosen]),
    )
    keys = configured_keys(raw.table)
    accounts = {
        name: Account(name, profile.base_url, profile.key_variable, keys.get(name))
        for name, profile in profiles.items()
    }
    match command.action:
        case "login":
            return log_in(desk, accounts[chosen], verify=command.verify)
        case "logout":
            return log_out(desk, accounts, None if command.everything else chosen)
        case "show":
            return show(desk, accounts[chosen], accounts if command.provider is None else {})
        case _:
            assert_never(command.action)


def _profiles(raw: RawConfig, flags: Flags, environment: Mapping[str, str]) -> dict[str, ProviderProfile]:
    """Every provider. Raises `SettingsError`."""
    table = {name: raw.table[name] for name in _READ if name in raw.table}
    own = {name: environment[name] for name in _VARIABLES if name in environment}
    settings = load_settings(RawConfig(raw.path, table, raw.problem), Flags(model=flags.model), own)
    return {profile.name: profile for profile in all_providers(settings)}


def _checking(profile: ProviderProfile) -> Callable[[str], Awaitable[KeyVerdict]]:
    async def check(key: str) -> KeyVerdict:
        # only who checks a key waits for the client library
        from agent_loop.llm.openai_compat.http import TcpTransport

        try:
            transport = TcpTransport(profile.base_url)
        except LlmError as error:
            return KeyVerdict("unknown", error.message)
        try:
            return await check_key(profile, key, transport)
        finally:
            await transport.aclose()

    return check
