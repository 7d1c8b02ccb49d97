"""Stored text made fit to be looked at: what a program printed or a model wrote must not act on a terminal or a page.

May not know: terminals, pages. Invariant: pure; of control characters only line feed and tab come out, and, of
`coloured_output` alone, complete colour sequences (SGR).
"""

import re
from typing import Final

from agent_loop.tools.terminal_text import TerminalText

# C0 controls have pictures; the rest of what acts without being seen (C1, text direction) becomes U+FFFD
_PICTURES: Final = (
    {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
    | {0x7F: 0x2421}
    | dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)
)
_ACTING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_OVERSTRUCK: Final = re.compile(".\x08")
_ERASE: Final = re.compile("\x1b\\[[0-9;:]*K")
_SGR: Final = re.compile("\x1b\\[[0-9;:]*m")
_CUT: Final = "… {} lines left out"


def visible(text: str) -> str:
    """`text` with a picture for each control character but line feed and tab."""
    # looked for first: most texts have none, and to translate one costs ten times as much
    return text.replace("\r\n", "\n").translate(_PICTURES) if _ACTING.search(text) else text


def one_line(text: str) -> str:
    """The same on one line, runs of white space as one space."""
    return " ".join(visible(text).split())


def coloured_output(text: str) -> str:
    """What a command printed, as it stood on the screen in the end: rewritten lines in their last form."""
    if not _ACTING.search(text):
        return text
    terminal = TerminalText()
    kept = terminal.feed(text.encode()) + terminal.finish()
    kept = _ERASE.sub("", _OVERSTRUCK.sub("", kept)).replace("\x08", "")
    kept = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in kept.split("\n"))
    # what is left besides colour is text, whose direction may still be turned
    return "".join(
        part if _SGR.fullmatch(part) else visible(part) for part in re.split(f"({_SGR.pattern})", kept) if part
    )


def plain_output(text: str) -> str:
    """The same without colours."""
    return _SGR.sub("", coloured_output(text))


def shortened(lines: list[str], *, head: int, tail: int) -> tuple[list[str], list[str]]:
    """The first `head` lines with a note about what is left out, and the last `tail`; or all of them, and none."""
    if len(lines) <= head + tail + 1:
        return lines, []
    return [*lines[:head], _CUT.format(len(lines) - head - tail)], lines[-tail:]


def size_text(size: int) -> str:
    """Bytes for people: `812 B`, `45.1 kB`, `150.0 MB`."""
    if size < 1000:
        return f"{size} B"
    power = min((len(str(size)) - 1) // 3, 3)
    return f"{size / 1000**power:.1f} {'BkMG'[power]}B"
