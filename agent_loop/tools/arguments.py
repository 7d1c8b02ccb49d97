"""The raw argument text of a tool call, read into an object.

May not know: any tool. Invariant: never raises; what it returns is an object that is losslessly JSON (no NaN, no lone
surrogate, at most 200 levels) or one sentence that says why there is none.
Source: contracts agent-loop.md §3 (tools), session-log.md §5.
"""

import json
import math
import re
from typing import Any, Final, NoReturn, TypeGuard

from agent_loop.vocabulary import JsonObject

MAX_DEPTH: Final = 200
_EXCERPT: Final = 500
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _Unfit(ValueError):
    """The text is JSON to Python, but not to the log or the wire."""


def parse_arguments(raw: str) -> JsonObject | str:
    """The arguments object, or a readable error text that quotes the (bounded) raw text.

    Empty or blank text is `{}`: providers send it for tools without parameters. Lone surrogates become U+FFFD.
    """
    if not raw.strip():
        return {}
    try:
        value = _clean(json.loads(raw, parse_constant=_refuse_constant), 0)
    except RecursionError:
        return _error(f"they are nested deeper than {MAX_DEPTH} levels", raw)
    except ValueError as error:
        return _error(str(error), raw)
    if not _is_object(value):
        return _error("they must be a JSON object", raw)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise _Unfit(f"{name} is not JSON")


def _clean(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _Unfit(f"they are nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float) and math.isinf(value):
        raise _Unfit("a number in them is too large")
    if _is_object(value):
        return {_clean(key, depth): _clean(item, depth + 1) for key, item in value.items()}
    if _is_array(value):
        return [_clean(item, depth + 1) for item in value]
    return value


def _is_object(value: Any) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _error(reason: str, raw: str) -> str:
    text = _SURROGATE.sub("\ufffd", raw)
    shown = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}… ({len(text)} characters)"
    return f"the arguments are not usable: {reason}. Received: {shown}"
