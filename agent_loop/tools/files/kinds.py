"""What a file is that is not text, from its first bytes.

May not know: files. Invariant: pure; what has no NUL in its beginning and no known signature is text.
"""

from typing import Final

_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "an executable"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


def binary_kind(head: bytes) -> str | None:
    """A noun phrase such as "a PNG image" for what `head` (the first bytes of a file) begins; None for text."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "a WebP image"
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    return "binary data" if b"\x00" in head else None
