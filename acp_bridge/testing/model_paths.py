"""Moves what a recorded model says about the working directory to another one.

May not know: processes, files. Invariant: pure; the number of events and the text around a path stay as they were, also
where the path is cut in two by the events of a stream.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

from acp_bridge.testing.json_values import JsonObject, as_list, as_object, encode
from acp_bridge.testing.model_server import Answer

CWD = "{{cwd}}"


def moved(answers: Sequence[Answer], *, old: str, new: str) -> list[Answer]:
    """The answers of a model script with `old` replaced by `new` wherever a string of theirs says it."""
    output: list[Answer] = []
    for answer in answers:
        changed = copy.deepcopy(answer)
        for strings in _strings(changed):
            pieces = _replaced([holder[key] for holder, key in strings], old, new)
            for (holder, key), piece in zip(strings, pieces, strict=True):
                holder[key] = piece
        output.append(json.loads(encode(changed).replace(encode(old)[1:-1], encode(new)[1:-1])))
    return output


def _strings(answer: Answer) -> Iterator[list[tuple[Any, Any]]]:
    """The pieces of each text and of each call's arguments, as (holder, key), in the order in which they are said."""
    yield from _flat(answer)
    channels: dict[tuple[Any, ...], list[tuple[Any, Any]]] = {}
    for op in as_list(answer.get("stream")) or []:
        yield from _flat(op)
        event: JsonObject = as_object(op.get("event")) or {}
        for choice in as_list(event.get("choices")) or []:
            delta: JsonObject = choice.get("delta") or {}
            for key in delta.keys() & {"content", "reasoning_content", "reasoning"}:
                _note(channels, (choice.get("index"), key), delta, key)
            for call in as_list(delta.get("tool_calls")) or []:
                function: JsonObject = call.get("function") or {}
                _note(channels, (choice.get("index"), "call", call.get("index")), function, "arguments")
    yield from channels.values()


def _note(
    channels: dict[tuple[Any, ...], list[tuple[Any, Any]]], channel: tuple[Any, ...], holder: JsonObject, key: str
) -> None:
    if isinstance(holder.get(key), str):
        channels.setdefault(channel, []).append((holder, key))


def _flat(answer: Answer) -> Iterator[list[tuple[Any, Any]]]:
    lists = [answer.get("reasoning"), answer.get("text")]
    lists += [call.get("arguments") for call in as_list(answer.get("tool_calls")) or []]
    for texts in map(as_list, lists):
        yield [(texts, index) for index in range(len(texts or ()))]


def _replaced(pieces: Sequence[str], old: str, new: str) -> list[str]:
    owners = [number for number, piece in enumerate(pieces) for _ in piece]
    joined, output, at = "".join(pieces), [""] * len(pieces), 0
    while (found := joined.find(old, at)) >= 0:
        for index in range(at, found):
            output[owners[index]] += joined[index]
        output[owners[found]] += new
        at = found + len(old)
    for index in range(at, len(joined)):
        output[owners[index]] += joined[index]
    return output
