"""What must not leave this machine with an exported session (contracts tools-and-bash.md §5, snapshots.md §4).

May not know: events, formats. Invariant: every known secret in every form is found, and what looks like one; the mark
says which it is, never what.
"""

import re
from collections.abc import Iterator
from typing import Final

from acp_bridge.cli.rewrite import Edit
from acp_bridge.testing.guards import SECRETS
from bash_exec.secrets import SecretRegistry

LOOKS_LIKE_ONE: Final = "what looks like a secret"
_SUSPECT_MARK: Final = "[looks like a secret]"

# the guards know the first line of a private key; the key is what follows it
_KEY_BODY: Final = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----(?:END|BEGIN))[\s\S]){0,8000}(?:-----END [A-Z ]*PRIVATE KEY-----)?"
)
_SUSPECT: Final = re.compile(f"{_KEY_BODY}|{SECRETS.pattern}")


class SecretFinder:
    """Called with a text: the edits that hide the values of `secrets` and what looks like a secret."""

    def __init__(self, secrets: SecretRegistry) -> None:
        self._secrets = secrets

    def __call__(self, text: str) -> Iterator[Edit]:
        known = [Edit(start, stop, mark, _name(mark)) for start, stop, mark in self._secrets.text.occurrences(text)]
        suspect = [Edit(found.start(), found.end(), _SUSPECT_MARK, LOOKS_LIKE_ONE) for found in _SUSPECT.finditer(text)]
        merged: list[Edit] = []
        for edit in sorted([*known, *suspect]):
            if merged and edit.start < merged[-1].stop:
                # none of the two may end where the other one goes on
                merged[-1] = _union(merged[-1], edit)
            else:
                merged.append(edit)
        yield from merged


def _union(one: Edit, other: Edit) -> Edit:
    named = other if one.what == LOOKS_LIKE_ONE else one
    return Edit(one.start, max(one.stop, other.stop), named.new, named.what)


def _name(mark: str) -> str:
    return mark.removeprefix("[redacted:").removesuffix("]")
