"""`dsh-acp-agent login` and `logout`: a person gives the agent a key, or takes it away (acp.md §2).

May not know: HTTP, where the store keeps things (the composition root hands both in). Invariants: redaction knows a key
as soon as it is read; it is written nowhere but into the store; nothing is stored that the provider rejected.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

import anyio

from acp_bridge.cli.parts import Streams
from acp_bridge.credential_file import CredentialStoreError, Entry
from acp_bridge.credential_store import CredentialStore
from agent_loop.llm.key_verdict import KeyVerdict
from bash_exec.secrets import SecretRegistry

DONE, NO_KEY, NOT_UNDERSTOOD, NOT_CHECKED, NOT_STORED = range(5)
_TRIES = 3
_LONGEST_KEY = 16 * 1024


@dataclass(frozen=True, slots=True)
class Account:
    """One provider: `variable` of its key (None: it needs none), and a key that stands in the configuration."""

    provider: str
    address: str
    variable: str | None
    configured: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Desk:
    """What the commands work with. `ask` puts a question and returns the hidden answer; None: there is no terminal."""

    streams: Streams
    store: CredentialStore
    secrets: SecretRegistry
    environment: Mapping[str, str] = field(repr=False)
    ask: Callable[[str], str] | None
    check: Callable[[str], Awaitable[KeyVerdict]]

    def say(self, text: str) -> None:
        """A line for the person, without keys."""
        self.streams.say(self.secrets.redact(text))


class _NoKey(Exception):
    """Nothing that could be a key was given; the text says what is wrong."""


def log_in(desk: Desk, account: Account, *, verify: bool) -> int:
    """Ask for the key, check it, keep it. Returns the exit code."""
    for tries_left in reversed(range(_TRIES if desk.ask else 1)):
        try:
            key = _read_key(desk, account)
        except (_NoKey, EOFError) as error:
            desk.say(f"{str(error) or 'no key was given'}; nothing is stored")
            return NO_KEY
        desk.secrets.add(f"credentials.{account.provider}", key, configured=True)
        verdict = anyio.run(desk.check, key) if verify else None
        if verdict is None or _may_be_kept(desk, verdict):
            return anyio.run(_keep, desk, account, key)
        if verdict.kind == "unknown":
            return NOT_CHECKED
        if tries_left:
            desk.say("try again, or leave with Ctrl-C")
    desk.say("nothing is stored")
    return NO_KEY


def log_out(desk: Desk, accounts: Mapping[str, Account], provider: str | None) -> int:
    """Remove the stored key of `provider`, None: of all. Returns the exit code."""
    try:
        names = sorted(desk.store.entries()) if provider is None else [provider]
        for name in names:
            removed = anyio.run(desk.store.forget, name)
            desk.say(f"the stored key of {name} is removed" if removed else f"no key of {name} is stored")
            if (account := accounts.get(name)) and (other := _elsewhere(desk, account)):
                desk.say(f"there still is one in {other}")
    except CredentialStoreError as error:
        desk.say(str(error))
        return NOT_STORED
    return DONE


def show(desk: Desk, chosen: Account, accounts: Mapping[str, Account]) -> int:
    """Say where the key of the chosen provider comes from, and those of others; 0 when the first has what it needs."""
    try:
        entries = desk.store.entries()
    except CredentialStoreError as error:
        desk.say(str(error))
        return NOT_STORED
    for account in {chosen.provider: chosen, **accounts}.values():
        desk.streams.tell(f"{account.provider}: {_source(desk, account, entries) or 'no key'}")
    return DONE if _source(desk, chosen, entries) else NO_KEY


def _read_key(desk: Desk, account: Account) -> str:
    if desk.ask is None:
        line = desk.streams.source.readline(_LONGEST_KEY)
    else:
        line = desk.ask(f"Key for {account.provider} at {account.address} (what you type is not shown): ")
    key = line.strip()
    if not key:
        raise _NoKey("no key was given")
    # it has to fit into a header
    if not (key.isascii() and key.isprintable()) or " " in key or len(key) >= _LONGEST_KEY:
        raise _NoKey("that is no key: it has spaces, or characters that no key has")
    return key


def _may_be_kept(desk: Desk, verdict: KeyVerdict) -> bool:
    desk.say(verdict.sentence)
    match verdict.kind:
        case "accepted":
            return True
        case "rejected":
            return False
        case "unknown":
            if desk.ask is None:
                desk.say("the key was not checked and is not stored; --no-verify stores it all the same")
                return False
            desk.streams.err.write("Store the key all the same, unchecked? [y/N] ")
            desk.streams.err.flush()
            return desk.streams.source.readline().strip().lower() in ("y", "yes")
        case _:
            assert_never(verdict.kind)


async def _keep(desk: Desk, account: Account, key: str) -> int:
    try:
        kept = await desk.store.save(account.provider, key)
    except CredentialStoreError as error:
        desk.say(f"{error}; nothing is stored")
        return NOT_STORED
    if kept.problem:
        desk.say(f"the system keyring cannot be used: {kept.problem}")
    desk.say(f"the key of {account.provider} is stored in {kept.place}; an agent that runs finds it at the next prompt")
    if _in_environment(desk, account):
        desk.say(f"but {account.variable} is set here, and where it is set it wins over the stored key")
    return DONE


def _source(desk: Desk, account: Account, entries: Mapping[str, Entry]) -> str | None:
    """The source that counts; None when there is none and one is needed."""
    entry = entries.get(account.provider)
    if entry is None or _in_environment(desk, account):
        return _elsewhere(desk, account) or ("needs no key" if account.variable is None else None)
    return desk.store.file.path if entry.ticket is None else "the system keyring"


def _elsewhere(desk: Desk, account: Account) -> str | None:
    """A source besides the store."""
    if _in_environment(desk, account):
        return f"the environment ({account.variable})"
    return "the configuration" if account.configured else None


def _in_environment(desk: Desk, account: Account) -> bool:
    return account.variable is not None and bool(desk.environment.get(account.variable, "").strip())
