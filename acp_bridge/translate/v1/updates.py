"""Session events to ACP v1 updates (acp.md §3): the same code live and on load.

May not know: peers, requests, time. Invariant: pure — the updates depend on the events fed so far and on the client's
capabilities, nothing else; a card is opened once, only ever moves forward, and is never updated before it is opened.
"""

from collections.abc import Callable, Iterator
from typing import assert_never

from acp_bridge.catalogue import Choice, Offer
from acp_bridge.schema import ClientCapabilities
from acp_bridge.translate.v1 import cards
from acp_bridge.translate.v1.cards import FindTool, OpenCard, Update
from acp_bridge.translate.v1.compactions import Compactions
from acp_bridge.translate.v1.options import config_options
from acp_bridge.translate.v1.prompts import FindAttachment, from_block
from agent_loop.session.events import KnownEvent, SessionEvent
from agent_loop.session.spending import Spent, add_usage
from agent_loop.vocabulary import CONTEXT_TOKENS, Block, JsonObject


def text_update(kind: str, text: str, message_id: str) -> Update:
    """A chunk of one message."""
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}, "messageId": message_id}


def pieces(text: str) -> Iterator[str]:
    """`text` in parts that keep every frame below the line limit."""
    for start in range(0, len(text), cards.TEXT_LIMIT):
        yield text[start : start + cards.TEXT_LIMIT]


def _user_chunks(blocks: list[Block], message_id: str, find: FindAttachment) -> Iterator[Update]:
    for block in blocks:
        content = from_block(block, find)
        if content["type"] == "text" and len(content["text"]) > cards.TEXT_LIMIT:
            yield from (text_update("user_message_chunk", part, message_id) for part in pieces(content["text"]))
        else:
            yield {"sessionUpdate": "user_message_chunk", "content": content, "messageId": message_id}


class UpdateRenderer:
    """Renders one session's events for one client, in order.

    `live`: the client's own prompts and command lines are not echoed, `usage_update` follows each call; on load they
    are shown, and usage is one frame at the end (`usage()`). `attachments`: what the next event names, by `ref`.
    `client_terminals`: foreground commands run in terminals of the client's own, which their cards embed; a load shows
    their stored output, since those terminals are gone.
    `offer`: what the session can choose (None: nothing is offered). It starts with the choice and the tokens that a new
    session has; `take_over` and `go_on` change that.
    """

    def __init__(
        self,
        find_tool: FindTool,
        capabilities: ClientCapabilities,
        *,
        cwd: str | None,
        window: Callable[[], int | None],
        live: bool,
        client_terminals: bool = False,
        offer: Offer | None = None,
    ) -> None:
        self._find = find_tool
        self._capabilities = capabilities
        self._cwd = cwd
        self._window = window
        self._live = live
        self._terminals = capabilities.terminal_output and not (live and client_terminals)
        self._cards: dict[str, OpenCard] = {}
        self._asked: dict[str, JsonObject | None] = {}
        self._used: int | None = None
        self.attachments: dict[str, bytes] = {}
        self.compactions = Compactions(capabilities)
        self._offer = offer
        self._choice = offer.default if offer else Choice("", "")
        self._model = ("", "")
        self._spent: Spent = {}

    def go_on(self, choice: Choice, spent: Spent) -> None:
        """What is rendered from now on follows a log in which so much was chosen and spent."""
        self._choice, self._spent = choice, spent

    def take_over(self, shown: "UpdateRenderer") -> None:
        """Go on where `shown` (a replay of the same events) has stopped: its open cards are the screen now."""
        self._cards, self._asked = shown.screen()
        self.compactions = shown.compactions

    def screen(self) -> tuple[dict[str, OpenCard], dict[str, JsonObject | None]]:
        """The open cards, and the calls whose permission was asked for before their card, with the previews."""
        return self._cards, self._asked

    def render(self, event: SessionEvent) -> list[Update]:  # noqa: C901, PLR0911, PLR0912 - one arm per event kind
        """The updates of one event, in order; `[]` for what is not shown."""
        if not isinstance(event, KnownEvent):
            return []
        data = event.data
        match event.type:
            case "assistant/chunk":
                return self._chunk(data)
            case "user/message":
                if self._live and data["source"]["kind"] == "user":
                    return []
                return list(_user_chunks(data["content"], f"u{event.seq}", self.attachments.get))
            case "tool/call":
                return self._call(data)
            case "tool/result":
                return self._result(data)
            case "assistant/message":
                return self._message(data)
            case "permission/request":
                return self._permission(data)
            case "permission/decision":
                if data["outcome"] != "allow" or data["callId"] not in self._cards:
                    return []
                return [{"sessionUpdate": "tool_call_update", "toolCallId": data["callId"], "status": "in_progress"}]
            case "command/run":
                if self._live:
                    return []
                return [text_update("user_message_chunk", part, f"u{event.seq}") for part in pieces(data["line"])]
            case "command/done":
                return [text_update("agent_message_chunk", part, f"c{event.seq}") for part in pieces(data["text"])]
            case "session/title":
                return [{"sessionUpdate": "session_info_update", "title": data["title"]}]
            case "session/notice":
                return [self.notice(data, f"n{event.seq}")]
            case "plan/update":
                return [{"sessionUpdate": "plan", "entries": data["entries"]}]
            case "mode/change":
                return self._mode(data["modeId"])
            case "config/change":
                return self._option(data["configId"], data.get("value"))
            case "request/header":
                self._model = (data["provider"], data["model"])
                return self.compactions.begin(event)
            case "history/compacted":
                self._used = None
                return self.compactions.complete()
            case "step/start":
                return self.compactions.stop({})
            case "turn/end":
                return self.compactions.stop(data["reason"])
            case "turn/start" | "step/end" | "context/message" | "steering/message" | "llm/retry" | "loop/change":
                return []
            case _:
                assert_never(event.type)

    def live_output(self, call_id: str, text: str) -> list[Update]:
        """New terminal output of a running call (transient: the result frame completes what was not shown)."""
        card = self._cards.get(call_id)
        if card is None or card.terminal is None or not text or card.sent >= cards.LIVE_OUTPUT_LIMIT:
            return []
        text = text[: cards.LIVE_OUTPUT_LIMIT - card.sent]
        card.sent += len(text)
        output = {"terminal_id": card.terminal, "data": text}
        return [{"sessionUpdate": "tool_call_update", "toolCallId": call_id, "_meta": {"terminal_output": output}}]

    def client_terminal(self, call_id: str, terminal_id: str) -> Update:
        """A terminal of the client's own in the card of a running call (transient: its output is in the result)."""
        return cards.embedded(self._find, call_id, self._cards[call_id], terminal=terminal_id, cwd=self._cwd)

    def usage(self) -> list[Update]:
        """The last call's context size, when the model's window is known; and what was spent, when every price is."""
        window = self._window()
        if self._used is None or window is None:
            return []
        cost = self._offer and self._offer.catalogue.cost(self._spent)
        priced = {"cost": {"amount": cost[0], "currency": cost[1]}} if cost else {}
        return [{"sessionUpdate": "usage_update", "used": self._used, "size": window, **priced}]

    def notice(self, data: JsonObject, message_id: str) -> Update:
        """`notice` for a client that advertised it, a visible line for every other one."""
        if self._capabilities.notices:
            optional = {"description": data["description"]} if "description" in data else {}
            return {"sessionUpdate": "notice", "severity": data["severity"], "title": data["title"], **optional}
        described = f"\n{data['description']}" if "description" in data else ""
        return text_update("agent_message_chunk", f"{data['title']}{described}\n", message_id)

    def _chunk(self, data: JsonObject) -> list[Update]:
        chunk = data["chunk"]
        kind = chunk["type"]
        if kind == "text-delta":
            name, letter = "agent_message_chunk", "m"
        elif kind == "reasoning-delta":
            name, letter = "agent_thought_chunk", "t"
        else:
            return []
        text: str = chunk["text"]
        if self.compactions.open == (data["turn"], data["step"]):
            parts = pieces(text) if kind == "text-delta" else ()
            return [update for part in parts for update in self.compactions.chunk(part)]
        message_id = f"{letter}{data['turn']}.{data['step']}"
        if len(text) <= cards.TEXT_LIMIT:
            return [text_update(name, text, message_id)] if text else []
        return [text_update(name, part, message_id) for part in pieces(text)]

    def _message(self, data: JsonObject) -> list[Update]:
        usage = data.get("usage")
        if usage is None:
            return []
        self._spent = add_usage(self._spent, self._model, usage)
        if self.compactions.open:
            # what was read to be summarised does not fill the context
            return []
        self._used = sum(usage.get(key, 0) for key in CONTEXT_TOKENS)
        return self.usage() if self._live else []

    def _permission(self, data: JsonObject) -> list[Update]:
        call_id: str = data["callId"]
        card = self._cards.get(call_id)
        if card is None:
            self._asked[call_id] = data.get("preview")
            return []
        # asked again: what the call would do has changed since it was asked about
        return [cards.previewed(self._find, call_id, card, cwd=self._cwd, preview=data.get("preview"))]

    def _mode(self, mode: str) -> list[Update]:
        if self._offer and mode not in self._offer.values("mode", self._offer.default):
            # the log of another version; such a session is in the default mode
            return []
        return [{"sessionUpdate": "current_mode_update", "currentModeId": mode}, *self._option("mode", mode)]

    def _option(self, config_id: str, value: object) -> list[Update]:
        if self._offer is None:
            return []
        self._choice = self._offer.after(self._choice, config_id, value)
        return [{"sessionUpdate": "config_option_update", "configOptions": config_options(self._offer, self._choice)}]

    def _call(self, data: JsonObject) -> list[Update]:
        call_id: str = data["callId"]
        status = "pending" if call_id in self._asked else "in_progress"
        card, update = cards.opened(
            self._find,
            call_id,
            data["name"],
            data["arguments"],
            cwd=self._cwd,
            terminals=self._terminals,
            status=status,
            preview=self._asked.pop(call_id, None),
        )
        self._cards[call_id] = card
        return [update]

    def _result(self, data: JsonObject) -> list[Update]:
        call_id: str = data["callId"]
        card = self._cards.pop(call_id, None)
        orphan = card is None
        update = cards.closed(
            self._find,
            call_id,
            card or OpenCard("tool", {}),
            content=data["content"],
            is_error=data["isError"],
            meta=data.get("meta"),
        )
        if orphan:
            update = {**update, "sessionUpdate": "tool_call", "title": "tool", "kind": "other"}
        return [update]
