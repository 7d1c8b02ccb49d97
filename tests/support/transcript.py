"""What a person sees of a list of updates: chunks joined per message, terminal data joined per terminal."""

from collections.abc import Iterable
from typing import Any

Update = dict[str, Any]


def joined(updates: Iterable[Update]) -> list[Update]:
    """Updates with neighbouring chunks of one message joined, and terminal data moved into one entry per terminal."""
    seen: list[Update] = []
    terminals: dict[str, str] = {}
    for original in updates:
        update = dict(original)
        meta = dict(update.get("_meta") or {})
        if output := meta.pop("terminal_output", None):
            terminals[output["terminal_id"]] = terminals.get(output["terminal_id"], "") + output["data"]
            update["_meta"] = meta
            if not meta and set(update) == {"sessionUpdate", "toolCallId", "_meta"}:
                continue
        last = seen[-1] if seen else None
        if (
            last
            and update["sessionUpdate"] in {"agent_message_chunk", "agent_thought_chunk", "compaction_summary_chunk"}
            and all(last.get(name) == update.get(name) for name in ("sessionUpdate", "messageId", "compactionId"))
        ):
            last["content"] = {"type": "text", "text": last["content"]["text"] + update["content"]["text"]}
        else:
            seen.append(update)
    return [*seen, {"terminals": terminals}]
