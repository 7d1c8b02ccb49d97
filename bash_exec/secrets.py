"""The secrets of the process, and text without them (contract tools-and-bash.md §5).

May not know: where values come from, who reads the text. Invariants: a stream redacted piece by piece reads like the
whole text redacted at once, but for the characters that a `Redactor` may reveal; text without secrets passes unchanged.
"""

from typing import Any, cast

from bash_exec.secret_forms import SHORTEST, dumped_forms, is_ordinary, utf8, written_forms
from bash_exec.secret_matcher import CONTEXT, REVEAL, Matcher

DELTA_REVEAL = REVEAL
"""Characters of a form's beginning that a model delta may show, so that one delta stays one frame."""


class SecretRegistry:
    """Secret values by name. One per process; it may grow at any time, and whoever redacts with it sees that."""

    def __init__(self) -> None:
        self.text = Matcher()
        # both sides as Latin-1: bytes are searched and cut fastest so
        self.bytes = Matcher(latin=True)

    def add(self, name: str, value: str, *, configured: bool = False) -> bool:
        """Register `value` and its forms as `name`; a form that is known keeps its name.

        False, and nothing registered, when it would mask ordinary text: shorter than 8 characters, a part of its own
        placeholder, or ordinary (see `is_ordinary`) and not `configured` as a key.
        """
        value = value.strip()
        mark = f"[redacted:{name}]"
        if len(value) < SHORTEST or value in mark or (not configured and is_ordinary(value)):
            return False
        for forms, dumped in ((written_forms(value), False), (dumped_forms(value), True)):
            for form in forms:
                self.text.add(form, mark, dumped=dumped)
                self.bytes.add(_latin(form), _latin(mark), dumped=dumped)
        return True

    @property
    def empty(self) -> bool:
        """True while no secret is registered."""
        return self.text.empty

    @property
    def forms(self) -> int:
        """How many forms are registered: a text that was redacted with as many needs it no second time."""
        return self.text.forms

    def redact(self, text: str, *, cut: bool = False) -> str:
        """`text` with `[redacted:NAME]` for each secret; the same object when there is none.

        `cut`: the text is the beginning of a longer one, and a secret that it ends in the middle of is one too.
        """
        parts: list[str] = []
        position = 0
        for start, end, mark in self.text.occurrences(text):
            parts += (text[position:start], mark)
            position = end
        if cut and (rest := self.text.cut_off(text, position)) is not None:
            return "".join((*parts, text[position : rest[0]], rest[1]))
        return "".join((*parts, text[position:])) if parts else text

    def redact_json(self, value: Any) -> Any:
        """A JSON value with every text in it redacted, keys too; the value itself when none can hold a secret."""
        if self.text.empty:
            return value
        texts: list[str] = []
        _collect_texts(value, texts)
        # one look at all its short texts together costs as much as at a single one; NUL, which no gap is, parts them
        return value if self.text.is_clear("\0".join(texts)) else self._redact_json(value)

    def _redact_json(self, value: Any) -> Any:
        if type(value) is str:
            return self.redact(value)
        if type(value) is dict:
            items = cast("dict[str, Any]", value).items()
            return {self.redact(key): self._redact_json(item) for key, item in items}
        if type(value) is list:
            return [self._redact_json(item) for item in cast("list[Any]", value)]
        return value


class Redactor:
    """Redacts a text that comes in pieces; one per stream.

    What could be the beginning of a secret is held back: never more than the longest form, and the gaps that a dump may
    have in it, less one character. Given out all the same, but remembered, are the first `DELTA_REVEAL` characters of a
    form that a gap interrupts; and of any other the first `reveal` (0 or `DELTA_REVEAL`). `latin`: the text is bytes
    decoded as Latin-1.
    """

    __slots__ = ("_matcher", "_reveal", "_shown", "_tail")

    def __init__(self, secrets: SecretRegistry, *, reveal: int = 0, latin: bool = False) -> None:
        self._matcher = secrets.bytes if latin else secrets.text
        self._reveal = reveal
        self._tail = ""  # the end of what was fed: given out up to `_shown`, held back from there
        self._shown = 0

    def feed(self, text: str) -> str:
        """Take the next piece; returns what can be given out now."""
        matcher = self._matcher
        if matcher.empty:
            return text
        whole = self._tail + text
        if not matcher.is_clear(whole):
            return self._pass(whole, matcher.unfinished(whole, 0))
        if self._reveal:
            # nothing was held back and nothing is now: that begins a form by more characters than may be shown
            self._keep(whole, len(whole))
            return text
        held, shown = matcher.stub(whole), self._shown
        self._keep(whole, held)
        return whole[shown:held]

    def finish(self, *, cut: bool = False) -> str:
        """The stream is over: what was held back. A next piece begins a new stream.

        `cut`: something may have ended it in the middle of a secret, which is redacted as far as it came.
        """
        whole = self._tail
        rest = self._matcher.cut_off(whole, 0) if cut else None
        text = self._pass(whole, len(whole) if rest is None else rest[0])
        self._tail, self._shown = "", 0
        return text if rest is None else text + rest[1]

    def _pass(self, whole: str, held: int) -> str:
        parts: list[str] = []
        position, shown = 0, self._shown
        for start, end, mark in self._matcher.occurrences(whole):
            if start >= held:
                break
            parts += (whole[max(position, shown) : start], mark)
            position = end
            if position > held:
                held = self._matcher.unfinished(whole, position)
        if len(whole) - held <= self._reveal:
            held = len(whole)
        parts.append(whole[max(position, shown) : held])
        self._keep(whole, held, position)
        return "".join(parts)

    def _keep(self, whole: str, held: int, position: int = 0) -> None:
        # a beginning that is given out stays known, or its secret would not be recognised
        begin = min(held, max(position, len(whole) - CONTEXT))
        self._tail = whole[begin:]
        self._shown = max(held, self._shown) - begin


class BytesRedactor:
    """The same for what a command prints: bytes of UTF-8 text or of anything else, that may end anywhere."""

    __slots__ = ("_redactor", "_secrets")

    def __init__(self, secrets: SecretRegistry) -> None:
        self._secrets = secrets
        self._redactor = Redactor(secrets, latin=True)

    def feed(self, data: bytes) -> bytes:
        """Take the next piece; returns what can be given out now."""
        if self._secrets.empty:
            return data
        return self._redactor.feed(data.decode("latin-1")).encode("latin-1")

    def finish(self) -> bytes:
        """The stream is over: what was held back, and of a secret that it was cut off in nothing."""
        return self._redactor.finish(cut=True).encode("latin-1")


def _collect_texts(value: Any, texts: list[str]) -> None:
    if type(value) is str:
        texts.append(value)
    elif type(value) is dict:
        fields = cast("dict[str, Any]", value)
        texts += fields
        for item in fields.values():
            _collect_texts(item, texts)
    elif type(value) is list:
        for item in cast("list[Any]", value):
            _collect_texts(item, texts)


def _latin(text: str) -> str:
    return utf8(text).decode("latin-1")
