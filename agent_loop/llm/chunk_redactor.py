"""Model chunks without secrets, as they go into the log (contract tools-and-bash.md §5).

May not know: sessions, providers, who runs a call. Invariants: a chunk in which no secret stands or begins passes as
the very same object; a secret split over the deltas of a block never shows but for its first `DELTA_REVEAL` characters,
and held text joins the block's next delta; a call's arguments are kept as the model wrote them, for its tool alone.
"""

from typing import Any, Final, cast

from agent_loop.vocabulary import StreamChunk
from bash_exec.secrets import DELTA_REVEAL, Redactor, SecretRegistry

_TEXTS: Final = {"text-delta": "text", "reasoning-delta": "text", "tool-call-delta": "argumentsDelta"}


class _Block:
    """The deltas of one type at one index: the latest as logged, and both versions of a call's arguments."""

    __slots__ = ("last", "logged", "redactor", "written")

    def __init__(self, secrets: SecretRegistry) -> None:
        self.redactor = Redactor(secrets, reveal=DELTA_REVEAL)
        self.last: dict[str, Any] = {}
        self.logged: list[str] = []
        self.written: list[str] = []


class ChunkRedactor:
    """For the chunks of one model call."""

    def __init__(self, secrets: SecretRegistry) -> None:
        self._secrets = secrets
        self._blocks: dict[tuple[int, str], _Block] = {}
        self._words: dict[str, str] = {}  # ids and names, which come again and again
        self._exact: dict[tuple[str, str], str] = {}

    def feed(self, chunk: StreamChunk) -> list[StreamChunk]:
        """What is to be logged for `chunk`, in order: mostly itself; nothing while all of its text is held back."""
        if self._secrets.empty:
            return [chunk]
        given = cast("dict[str, Any]", chunk)
        kind: str = given["type"]
        field = _TEXTS.get(kind)
        if field is not None:
            block = self._blocks.get((given["index"], kind)) or self._open(given["index"], kind)
            text: str = given[field]
            shown = block.redactor.feed(text)
            if kind == "tool-call-delta":
                given = self._call_delta(block, given, shown)
            block.last = given
            if shown is not text:
                # the delta of a call may be the one with its name: it is logged whatever is held back of its arguments
                logged = [{**given, field: shown}] if shown or kind == "tool-call-delta" else []
            else:
                logged = [given]
        elif kind == "block-end":
            logged = [*self._end(given["index"]), self._block_end(given)]
        elif kind == "finish":
            logged = [*self._end(None), self._secrets.redact_json(given)]
        else:
            return [chunk]
        return cast("list[StreamChunk]", logged)

    def finish(self) -> list[StreamChunk]:
        """The call is over: what was held back."""
        return cast("list[StreamChunk]", self._end(None))

    def exact_arguments(self, call_id: str, logged: str) -> str | None:
        """What the model wrote as the arguments of a call that were logged so; None: the same."""
        return self._exact.get((call_id, logged))

    def _open(self, index: int, kind: str) -> _Block:
        block = self._blocks[index, kind] = _Block(self._secrets)
        return block

    def _call_delta(self, block: _Block, chunk: dict[str, Any], shown: str) -> dict[str, Any]:
        block.written.append(chunk["argumentsDelta"])
        block.logged.append(shown)
        known = {field: self._word(chunk[field]) for field in ("id", "name") if field in chunk}
        return chunk if known.items() <= chunk.items() else chunk | known

    def _word(self, word: str) -> str:
        if word not in self._words:
            self._words[word] = self._secrets.redact(word)
        return self._words[word]

    def _block_end(self, chunk: dict[str, Any]) -> dict[str, Any]:
        logged = self._secrets.redact_json(chunk)
        block = logged["block"]
        if block["type"] == "tool-call":
            self._note(block["id"], block["arguments"], chunk["block"]["arguments"])
        return logged

    def _end(self, index: int | None) -> list[dict[str, Any]]:
        """Let go of the blocks at `index`, or of all: what of their texts was held back, as one more delta each."""
        rests: list[dict[str, Any]] = []
        for key in [key for key in self._blocks if index is None or key[0] == index]:
            block = self._blocks.pop(key)
            field = _TEXTS[key[1]]
            rest = block.redactor.finish()
            if rest:
                rests.append({name: value for name, value in block.last.items() if name != "name"} | {field: rest})
            if key[1] == "tool-call-delta":
                logged = "".join((*block.logged, rest))
                self._note(block.last["id"] or f"call-{key[0]}", logged, "".join(block.written))
        return rests

    def _note(self, call_id: str, logged: str, written: str) -> None:
        if logged != written:
            self._exact[call_id, logged] = written
