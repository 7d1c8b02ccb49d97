"""The history normaliser: what a provider is given is always valid (contract llm.md §5).

May not know: any provider's shape. Invariant: pure and idempotent; a valid history passes unchanged (the very same
message objects). Valid means: every tool call is answered by exactly one result, in user messages of results alone
that stand right behind their assistant message; no other results; no message without content; no call id twice in one
message; reasoning only where the policy sends it back; with `merge_users`, no two user messages in a row.
"""

from operator import is_
from typing import Literal

from agent_loop.vocabulary import Block, Message, text_block

ReasoningPolicy = Literal["echo", "echo-with-tools", "strip", "none"]
"""Which assistant messages carry their reasoning back to the model: all (`echo`), those with tool calls
(`echo-with-tools`), none because the model refuses it (`strip`) or does not know it (`none`)."""

NO_RESULT_TEXT = "Error: no result of this call was recorded; it may or may not have run."


def begins_with(messages: list[Message], known: list[Message]) -> bool:
    """Whether the first of `messages` are those that are known: the very same objects."""
    return len(known) <= len(messages) and all(map(is_, known, messages))


class Normaliser:
    """`normalise` for one conversation that grows: looks at what is new only, as long as the rest is the same."""

    __slots__ = ("_known", "_policy", "_sent")

    def __init__(self) -> None:
        self._policy: tuple[ReasoningPolicy, bool] = ("echo", False)
        self._known: list[Message] = []
        self._sent: list[Message] = []  # what `normalise` makes of the known ones

    def __call__(self, messages: list[Message], *, reasoning: ReasoningPolicy, merge_users: bool) -> list[Message]:
        """What `normalise` gives; the very list when nothing in it is to be changed."""
        if self._policy != (reasoning, merge_users) or not begins_with(messages, self._known):
            self._policy = reasoning, merge_users
            self._known, self._sent = [], []
        new = messages[len(self._known) :]
        output, settled = _normalise(new, reasoning)
        sent = [*self._sent[:-1], *_merge_users([*self._sent[-1:], *output])] if merge_users else self._sent + output
        if settled:
            self._known += new
            self._sent = sent
        return messages if len(sent) == len(messages) and begins_with(messages, sent) else [*sent]


def normalise(messages: list[Message], *, reasoning: ReasoningPolicy, merge_users: bool) -> list[Message]:
    """Make a derived history valid for a provider with this reasoning policy.

    A call without a result gets a synthetic error result, a result without a call is dropped, results that were
    logged behind later user messages move up to their call. Never changes a message in place.
    """
    output, _settled = _normalise(messages, reasoning)
    return _merge_users(output) if merge_users else output


def _normalise(messages: list[Message], reasoning: ReasoningPolicy) -> tuple[list[Message], bool]:
    """The valid messages; and whether every call has its result: then what comes later changes nothing of them."""
    output: list[Message] = []
    open_calls: dict[str, None] = {}
    results: list[Message] = []
    waiting: list[Message] = []

    def close_group() -> None:
        if not (open_calls or results):
            output.extend(waiting)
            waiting.clear()
            return
        output.extend(results)
        if open_calls:
            output.append({"role": "user", "content": [_missing_result(call_id) for call_id in open_calls]})
        output.extend(waiting)
        open_calls.clear()
        results.clear()
        waiting.clear()

    for message in messages:
        if message["role"] == "assistant":
            kept = _assistant(message, reasoning)
            if kept is not None:
                close_group()
                output.append(kept)
                open_calls.update((block["id"], None) for block in kept["content"] if block["type"] == "tool-call")
        else:
            answers, rest = _split(message, open_calls)
            results.extend(answers)
            waiting.extend(rest)
    settled = not open_calls
    close_group()
    return output, settled


def _missing_result(call_id: str) -> Block:
    return {"type": "tool-result", "toolCallId": call_id, "content": [text_block(NO_RESULT_TEXT)], "isError": True}


def _assistant(message: Message, reasoning: ReasoningPolicy) -> Message | None:
    """The message as the policy sends it; None when nothing of it is left."""
    content = message["content"]
    if len(content) == 1 and content[0]["type"] == "text" and content[0]["text"]:
        # most answers are this, and every prompt looks at all of them again
        return message
    has_calls = any(block["type"] == "tool-call" for block in content)
    echoes = reasoning == "echo" or (reasoning == "echo-with-tools" and has_calls)
    sendable = ("text", "reasoning") if echoes else ("text",)
    seen: set[str] = set()
    kept: list[Block] = []
    for block in content:
        if block["type"] == "tool-call":
            if block["id"] in seen:
                continue
            seen.add(block["id"])
        elif block["type"] not in sendable or not block["text"]:
            continue
        kept.append(block)
    if not kept:
        return None
    return message if len(kept) == len(content) else {"role": "assistant", "content": kept}


def _split(message: Message, open_calls: dict[str, None]) -> tuple[list[Message], list[Message]]:
    """Separate the results that answer an open call (which they close) from the rest; orphans vanish."""
    content = message["content"]
    if len(content) == 1 and content[0]["type"] == "text":
        return [], [message]
    answers: list[Block] = []
    rest: list[Block] = []
    for block in content:
        if block["type"] != "tool-result":
            rest.append(block)
        elif block["toolCallId"] in open_calls:
            del open_calls[block["toolCallId"]]
            answers.append(block)
    return _as_messages(message, answers), _as_messages(message, rest)


def _as_messages(message: Message, blocks: list[Block]) -> list[Message]:
    if not blocks:
        return []
    return [message] if len(blocks) == len(message["content"]) else [{"role": message["role"], "content": blocks}]


def _merge_users(messages: list[Message]) -> list[Message]:
    """Join neighbouring user messages that hold no results (those become messages of their own on the wire)."""
    output: list[Message] = []
    for message in messages:
        if output and _is_plain_user(message) and _is_plain_user(output[-1]):
            joined = [*output[-1]["content"], text_block("\n\n"), *message["content"]]
            output[-1] = {"role": "user", "content": joined}
        else:
            output.append(message)
    return output


def _is_plain_user(message: Message) -> bool:
    return message["role"] == "user" and message["content"][0]["type"] != "tool-result"
