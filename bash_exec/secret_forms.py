"""How a secret may look in a text (contract tools-and-bash.md §5).

May not know: names, streams, who reads the text, how a form is found. Invariant: what `is_ordinary` calls so has no
form that ordinary text could hold by chance.
"""

import json
import re
from binascii import b2a_base64
from collections.abc import Iterator

SHORTEST = 8
"""Characters of a form; a shorter value is a word that ordinary text may rightly hold."""

_NUMBER = re.compile(r"[-+]?[\d.,:]+")
_PATH = re.compile(r"(?:~|\.{1,2})?/")
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/?#\s]*")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_UNQUOTED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")
_KEPT = (b"", b"/", b"!*'()")  # by Python's quote_plus, its quote, and JavaScript's encodeURIComponent


def is_ordinary(value: str, *, cut: bool = False) -> bool:
    """True for a path, a URL without userinfo, a number, or letters only: text that may be no secret at all.

    `cut`: the value goes on behind what is given, and a URL that may still get to its `@` is not ordinary.
    """
    if value.isalpha() or _NUMBER.fullmatch(value) or _PATH.match(value):
        return True
    url = _URL.match(value)
    if url is None or "@" in url[0]:
        return False
    return not cut or url.end() < len(value) or ":" not in url[0].partition("://")[2]


def utf8(text: str) -> bytes:
    """The bytes of an environment's text, undecodable ones included."""
    return text.encode(errors="surrogateescape")


def written_forms(value: str) -> Iterator[str]:
    """`value` plain, URL-quoted and JSON-escaped, some of them twice."""
    data = utf8(value)
    yield value
    for kept in _KEPT:
        quoted = "".join(chr(byte) if byte in _UNQUOTED or byte in kept else f"%{byte:02X}" for byte in data)
        yield quoted
        yield quoted.replace("%20", "+")
        yield _ESCAPE.sub(lambda found: found[0].lower(), quoted)
    for ascii_only in (True, False):
        escaped = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        yield escaped.replace("/", "\\/")


def dumped_forms(value: str) -> Iterator[str]:
    """`value` in hex and base64, some of them twice: what programs print in groups and lines of their own.

    base64: the characters that do not depend on what stands before or behind it, for each of the three alignments.
    """
    data = utf8(value)
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):
        coded = b2a_base64(bytes(before) + data, newline=False).decode()
        own = coded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        yield own
        yield own.replace("+", "-").replace("/", "_")
