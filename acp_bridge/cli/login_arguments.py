"""The command lines of `dsh-acp-agent login` and `logout`, read into plain values.

May not know: stores, streams. Invariant: what does not fit has ended the process with exit code 2 and a line that says
what is wanted.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

_LOGIN = """\
Asks for a provider's key (the input is hidden), or reads it as one line from a pipe, checks it with one cheap request
and keeps it: in the system keyring where the Python package `keyring` is installed and works, else in a private file.
A key in the environment wins over it, and it wins over one in config.toml."""
_EXITS = (
    "Exit codes: 0 done; 1 no key, or a rejected one: nothing is stored; 2 not understood, or the configuration cannot "
    "be used; 3 the key could not be checked: nothing is stored; 4 it could not be stored or removed; 130 Ctrl-C."
)


@dataclass(frozen=True, slots=True)
class KeyCommand:
    """`provider` None: the one whose model is chosen. `action`: `show` says which source is used."""

    action: Literal["login", "logout", "show"]
    provider: str | None
    config: str | None
    verify: bool = True
    everything: bool = False


def parse_login(argv: Sequence[str]) -> KeyCommand:
    """What follows the word `login`."""
    parser = _parser("login", _LOGIN)
    parser.add_argument("--no-verify", action="store_true", help="store the key without asking the provider")
    parser.add_argument("--status", action="store_true", help="say where the key comes from; ask for nothing")
    given = parser.parse_args(argv)
    return KeyCommand("show" if given.status else "login", given.provider, given.config, verify=not given.no_verify)


def parse_logout(argv: Sequence[str]) -> KeyCommand:
    """What follows the word `logout`."""
    parser = _parser("logout", "Removes the key of a provider that `login` has stored.")
    parser.add_argument("--all", action="store_true", help="the keys of all providers")
    given = parser.parse_args(argv)
    return KeyCommand("logout", given.provider, given.config, everything=given.all)


def _parser(word: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"dsh-acp-agent {word}", description=description, epilog=_EXITS)
    parser.add_argument("--provider", metavar="NAME", help="default: the provider of the chosen model")
    parser.add_argument("--config", metavar="FILE", help="configuration file")
    return parser
