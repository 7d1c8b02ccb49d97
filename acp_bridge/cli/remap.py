"""Paths of the machine that a log comes from, as paths of this one.

May not know: events. Invariant: a path is replaced where it stands whole, or is followed by more of the path; never
inside another name (`/srv/app` is not in `/srv/apple`, nor in `/old/srv/app`). All at once: what was put in is not
looked at again.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from acp_bridge.cli.rewrite import Edit

_BEFORE = r"(?:(?<![\w.\-+@~%/\\])|(?<=file://))"
_AFTER = r"(?![\w\-+@~%]|\.\w)"
_UNFIT = re.compile(r'["\\\x00-\x1f\x7f]')


class PathError(Exception):
    """A path that cannot stand in such a map; the text says why."""


def full_path(path: str) -> str:
    """`path` absolute and normalised, `~` expanded. Raises `PathError` for the root, or for odd characters."""
    full = os.path.normpath(os.path.abspath(os.path.expanduser(path)))
    if not full.strip("/"):
        raise PathError(f"{path!r} is the root of everything; name a directory below it")
    if _UNFIT.search(full):
        raise PathError(f"{path!r} holds a quote, a backslash or a control character, which a log cannot take over")
    return full


def parse_mapping(given: str) -> tuple[str, str]:
    """`OLD=NEW` as two full paths. Raises `PathError`."""
    old, equals, new = given.partition("=")
    if not (equals and old and new):
        raise PathError(f"{given!r} is no OLD=NEW")
    if not os.path.isabs(os.path.expanduser(old)):
        raise PathError(f"{old!r} is no absolute path, and where it was relative to is not known")
    return full_path(old), full_path(new)


class PathMap:
    """Called with a text: the edits that put the new paths in. `mappings`: (old, new), each full; the first counts."""

    def __init__(self, mappings: Iterable[tuple[str, str]]) -> None:
        self._forms: dict[str, tuple[str, str]] = {}
        for old, new in mappings:
            # as it is, as it stands in a URI, and as it stands in JSON that escapes what is not ASCII
            for form, put in ((old, new), (quote(old), quote(new)), (json.dumps(old)[1:-1], json.dumps(new)[1:-1])):
                self._forms.setdefault(form, (put, old))
        longest_first = sorted(self._forms, key=len, reverse=True)
        self._pattern = re.compile(f"{_BEFORE}(?:{'|'.join(map(re.escape, longest_first))}){_AFTER}")

    def __call__(self, text: str) -> Iterator[Edit]:
        for found in self._pattern.finditer(text) if self._forms else ():
            new, old = self._forms[found[0]]
            yield Edit(found.start(), found.end(), new, old)
