"""What a session is called: a short line from its first prompt, for a person who looks for it in a list.

May not know: logs, hooks. Invariant: pure; a title is one line of 1 to 60 characters without control characters.
"""

import re
from collections.abc import Iterable
from typing import Final

from agent_loop.vocabulary import Block

MAX_TITLE: Final = 60

# One line, or its first 500 characters: more are never needed, and a prompt may be very long.
_LINE: Final = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]{1,500}")
_COMMAND: Final = re.compile(r"/[a-z][a-z0-9_-]*(?:\s|$)")
_JOINERS: Final = "\u200c\u200d"  # invisible too, but they make one emoji of several, and letters of some scripts


def title_of(blocks: Iterable[Block]) -> str | None:
    """The title that a prompt gives: its first line of text that is not blank; None for a slash command or no text."""
    for block in blocks:
        if block["type"] != "text":
            continue
        for line in _LINE.finditer(block["text"]):
            if title := short_title(line[0]):
                return None if _COMMAND.match(title) else title
    return None


def short_title(text: str) -> str | None:
    """`text` as a title: white space collapsed, cut at a word with "…"; None when nothing visible is left."""
    title = " ".join("".join(map(_plain, text)).split()).strip(_JOINERS + " ")
    if len(title) <= MAX_TITLE:
        return title or None
    head = title[:MAX_TITLE]
    words, space, _cut = head.rpartition(" ")
    # one word that fills more than half is cut itself
    return (words if space and len(words) > MAX_TITLE // 2 else head[:-1]).rstrip() + "…"


def _plain(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    import unicodedata  # noqa: PLC0415 - a megabyte of tables for a character that few prompts have

    # what only formats (direction marks, soft hyphens) stands inside words; controls part them
    return "" if unicodedata.category(character) == "Cf" else " "
