"""Tool calls as cards (acp.md §3 "Cards", "Terminal card"; surface.md §4).

May not know: who runs a tool, when. Invariant: pure — the same logged call and result give the same card live and on
load — and total: a tool whose presentation raises gets the generic card (the presentation wall).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeGuard, assert_never

from agent_loop.tools.arguments import parse_arguments
from agent_loop.tools.bash_text import fenced_console
from agent_loop.tools.seam import CallCard, DiffCard, GenericCard, ResultCard, TerminalCard, TerminalResult, Tool
from agent_loop.vocabulary import Block, JsonObject

_SHOWN_OTHERWISE: Final = ("output", "diffs")

Update = dict[str, Any]
FindTool = Callable[[str], Tool | None]

TEXT_LIMIT = 256 * 1024
"""Characters of one text in a frame: keeps every line below 4 MiB, also where each is escaped to six bytes."""
LIVE_OUTPUT_LIMIT = 256 * 1024
"""Characters of live terminal output per call; the rest comes with the result."""
DIFF_LIMIT = 512 * 1024
"""Characters of all diffs of one card: what does not fit is counted."""
CUT_NOTE = "\n[… {count} characters left out …]\n"


def cut(text: str, limit: int = TEXT_LIMIT) -> str:
    """`text` with its middle left out, saying so, when it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return text[:half] + CUT_NOTE.format(count=len(text) - 2 * half) + text[-half:]


def raw_object(raw: str) -> JsonObject:
    """A call's arguments as an object, long texts in it cut; what is none, or too large even so, as `arguments`."""
    parsed = parse_arguments(raw)
    if isinstance(parsed, str):
        return {"arguments": cut(raw)}
    if len(raw) <= TEXT_LIMIT:
        return parsed
    short = {key: cut(value, TEXT_LIMIT // 4) if isinstance(value, str) else value for key, value in parsed.items()}
    return short if len(json.dumps(short)) <= TEXT_LIMIT else {"arguments": cut(raw)}


@dataclass(slots=True)
class OpenCard:
    """A card on the screen. `sent` counts the characters of terminal output shown so far.

    `terminal` is the display terminal that we feed; `embedded`: the card shows a terminal of the client's own.
    """

    name: str
    arguments: JsonObject
    terminal: str | None = None
    sent: int = 0
    embedded: bool = False


def _content(blocks: list[Block]) -> list[dict[str, Any]]:
    return [{"type": "content", "content": _shown(block)} for block in blocks]


def _shown(block: Block) -> dict[str, Any]:
    if block["type"] == "image" and "data" in block:
        return {"type": "image", "data": block["data"], "mimeType": block.get("mimeType", "image/png")}
    return {"type": "text", "text": cut(_readable(block))}


def _readable(block: Block) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else f"[{block.get('type', 'content')}]"


def _diff_content(diffs: list[JsonObject]) -> list[dict[str, Any]]:
    """Diff blocks; a text that is too long is cut, and diffs that do not fit any more are counted."""
    content: list[dict[str, Any]] = []
    room = DIFF_LIMIT
    for diff in diffs:
        old = None if diff["oldText"] is None else cut(diff["oldText"])
        new = cut(diff["newText"])
        room -= len(old or "") + len(new)
        if room < 0 and content:
            note = f"[… {len(diffs) - len(content)} more changes not shown …]"
            return content + _content([{"type": "text", "text": note}])
        content.append({"type": "diff", "path": diff["path"], "oldText": old, "newText": new})
    return content


def call_card(
    find: FindTool, name: str, arguments: JsonObject, cwd: str | None, preview: JsonObject | None = None
) -> CallCard:
    """The tool's own card, or the generic one."""
    tool = find(name)
    if tool is not None:
        try:
            return tool.present_call(arguments, cwd, preview)
        except Exception:  # noqa: BLE001 - the presentation wall: any card beats no card
            return GenericCard(title=name)
    return GenericCard(title=name)


def card_fields(card: CallCard, *, terminal: str | None, cwd: str | None) -> Update:
    """Title, kind, content, locations; with `terminal`, the display terminal and its `_meta.terminal_info`."""
    match card:
        case GenericCard():
            fields: Update = {"title": card.title or "tool", "kind": card.kind}
            if card.content:
                fields["content"] = _content(card.content)
            if card.locations:
                fields["locations"] = card.locations
            return fields
        case TerminalCard():
            described: list[dict[str, Any]] = (
                _content([{"type": "text", "text": card.description}]) if card.description else []
            )
            fields = {"title": cut(card.title), "kind": "execute"}
            if terminal is not None:
                described.append({"type": "terminal", "terminalId": terminal})
                fields["_meta"] = {"terminal_info": {"terminal_id": terminal, "cwd": card.cwd or cwd}}
            if described:
                fields["content"] = described
            return fields
        case DiffCard():
            fields = {"title": card.title, "kind": card.kind}
            if card.diffs:
                fields["content"] = _diff_content(card.diffs)
            fields["locations"] = card.locations
            return fields
        case _:
            assert_never(card)


def opened(
    find: FindTool,
    call_id: str,
    name: str,
    raw: str,
    *,
    cwd: str | None,
    terminals: bool,
    status: str,
    preview: JsonObject | None = None,
) -> tuple[OpenCard, Update]:
    """The `tool_call` of a logged call. `terminals`: the client shows display terminals.

    `preview`: what its `permission/request` says that it would change.
    """
    arguments = raw_object(raw)
    card = call_card(find, name, arguments, cwd, preview)
    terminal = call_id if terminals and isinstance(card, TerminalCard) else None
    fields = card_fields(card, terminal=terminal, cwd=cwd)
    meta = {"tool_name": name, **fields.pop("_meta", {})}
    update = {
        "sessionUpdate": "tool_call",
        "toolCallId": call_id,
        "title": fields.pop("title"),
        "name": name,
        "kind": fields.pop("kind"),
        "status": status,
        "rawInput": arguments,
        **fields,
        "_meta": meta,
    }
    return OpenCard(name, arguments, terminal), update


def previewed(find: FindTool, call_id: str, card: OpenCard, *, cwd: str | None, preview: JsonObject | None) -> Update:
    """The `tool_call_update` that shows another preview on an open card."""
    fields = card_fields(call_card(find, card.name, card.arguments, cwd, preview), terminal=None, cwd=cwd)
    shown = {key: fields[key] for key in ("content", "locations") if key in fields}
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, **shown}


def embedded(find: FindTool, call_id: str, card: OpenCard, *, terminal: str, cwd: str | None) -> Update:
    """The `tool_call_update` that shows a terminal of the client's own below what the card shows already."""
    card.embedded = True
    shown = card_fields(call_card(find, card.name, card.arguments, cwd), terminal=None, cwd=cwd)
    content = [*shown.get("content", ()), {"type": "terminal", "terminalId": terminal}]
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "content": content,
        "_meta": {"tool_name": card.name},
    }


def result_card(find: FindTool, card: OpenCard, content: list[Block], meta: JsonObject | None) -> ResultCard | None:
    """The tool's own end of the card; None = the result's blocks as they are."""
    tool = find(card.name)
    if tool is not None:
        try:
            return tool.present_result(card.arguments, content, meta)
        except Exception:  # noqa: BLE001 - the presentation wall
            return None
    return None


def closed(
    find: FindTool, call_id: str, card: OpenCard, *, content: list[Block], is_error: bool, meta: JsonObject | None
) -> Update:
    """The `tool_call_update` of a logged result; for a terminal card the rest of its output and its exit."""
    update: Update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": "failed" if is_error else "completed",
    }
    result = result_card(find, card, content, meta)
    facts = {key: value for key, value in (meta or {}).items() if key not in _SHOWN_OTHERWISE}
    if facts:
        update["rawOutput"] = facts
    extra: JsonObject = {"tool_name": card.name}
    if isinstance(result, DiffCard) and result.locations:
        update["locations"] = result.locations
    if card.embedded and _has_ended(result):
        pass  # the client's terminal shows it all, and content would take its place
    elif card.terminal is None:
        update["content"] = _plain_content(content, result)
    else:
        shown, exit_code, signal = _terminal_end(content, result, update)
        if rest := _unsent(card, shown, meta or {}):
            extra["terminal_output"] = {"terminal_id": card.terminal, "data": cut(rest)}
        extra["terminal_exit"] = {"terminal_id": card.terminal, "exit_code": exit_code, "signal": signal}
    update["_meta"] = extra
    return update


def _unsent(card: OpenCard, shown: str, meta: JsonObject) -> str:
    """What of the stored output the screen does not have yet; stored text with a gap is head, note, tail."""
    dropped = meta.get("outputDropped")
    if not dropped or card.sent == 0:
        return shown[card.sent :]
    if card.sent < LIVE_OUTPUT_LIMIT:
        return ""  # all of it was seen live
    _head, note, ending = shown.partition(f"[{dropped} bytes not shown]\n")
    return note + ending


def _plain_content(content: list[Block], result: ResultCard | None) -> list[dict[str, Any]]:
    match result:
        case GenericCard():
            return _content(result.content)
        case DiffCard():
            return _diff_content(result.diffs)
        case TerminalResult():
            return _content([{"type": "text", "text": fenced_console(_readable(block))} for block in content])
        case None:
            return _content(content)
        case _:
            assert_never(result)


def _has_ended(result: ResultCard | None) -> TypeGuard[TerminalResult]:
    return isinstance(result, TerminalResult) and (result.exit_code is not None or result.signal is not None)


def _terminal_end(
    content: list[Block], result: ResultCard | None, update: Update
) -> tuple[str, int | None, str | None]:
    if _has_ended(result):
        return result.output, result.exit_code, result.signal
    # it never ran (rejected, repaired, spawn failure): the card says why
    update["content"] = _content(content)
    return "", None, None
