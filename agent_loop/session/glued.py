"""Records that share one line of a damaged log, taken apart (contract session-log.md §9).

May not know: what an event means, files. Invariant: the parts of a line, put one behind the other, are the line.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from agent_loop.session.codec import Envelope, LineError, NotJsonError
from agent_loop.session.migrations import Migration
from agent_loop.session.scan import decode_well_formed

_RECORD: Final = re.compile(r'\{\s*"type"\s*:')
_DECODER: Final = json.JSONDecoder()


class Part(NamedTuple):
    """A part of a line: where it begins in it, its bytes, and its event; or why it is none."""

    at: int
    content: bytes
    event: Envelope | None
    fault: str = ""


def parts_of(line: bytes, steps: tuple[Migration, ...]) -> Iterator[Part]:
    """The events of a line and what stands between them. A line of one event, or of valid JSON, is one part."""
    try:
        whole = decode_well_formed(line, steps)
    except NotJsonError as error:
        yield from _taken_apart(line, steps, str(error))
    except LineError as error:
        yield Part(0, line, None, str(error))
    else:
        yield Part(0, line, whole)


def first_object(line: bytes) -> bytes:
    """The JSON object that `line` begins with; empty when there is none."""
    return line[: _end_of_object(line.decode("latin-1"), 0)]


def _taken_apart(line: bytes, steps: tuple[Migration, ...], fault: str) -> Iterator[Part]:
    # one character for each byte, so that places in the text are places in the line
    text = line.decode("latin-1")
    done = at = 0
    while found := _RECORD.search(text, at):
        start = found.start()
        end = _end_of_object(text, start)
        at = end or found.end()
        try:
            event = decode_well_formed(line[start:end], steps)
        except LineError:
            continue
        if line[done:start]:
            yield Part(done, line[done:start], None, fault)
        yield Part(start, line[start:end], event)
        done = end
    if line[done:].strip() or not done:
        yield Part(done, line[done:], None, fault)


def _end_of_object(text: str, start: int) -> int:
    """Where the object that begins at `start` ends; 0 when it does not."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return 0
