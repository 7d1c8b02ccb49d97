"""The secrets of the process, and text without them (contract tools-and-bash.md §5).

May not know: where values come from, who reads the text. Invariants: a stream redacted piece by piece reads like the
whole text redacted at once, but for the characters that a `Redactor` may reveal; text without secrets passes unchanged.
"""

from typing import Any, cast

from bash_exec.secret_forms import DELTA_REVEAL, SHORTEST, Matcher, forms_of, is_ordinary, utf8

__all__ = ["DELTA_REVEAL", "BytesRedactor", "Redactor", "SecretRegistry"]


class SecretRegistry:
    """Secret values by name. One per process; it may grow at any time, and whoever redacts with it sees that."""

    def __init__(self) -> None:
        self.text = Matcher()
        # both sides as Latin-1: bytes are searched and cut fastest so
        self.bytes = Matcher()

    def add(self, name: str, value: str, *, configured: bool = False) -> bool:
        """Register `value` and its forms as `name`; a form that is known keeps its name.

        False, and nothing registered, when it would mask ordinary text: shorter than 8 characters, a part of its own
        placeholder, or ordinary (see `is_ordinary`) and not `configured` as a key.
        """
        value = value.strip()
        mark = f"[redacted:{name}]"
        if len(value) < SHORTEST or value in mark or (not configured and is_ordinary(value)):
            return False
        for form in forms_of(value):
            self.text.add(form, mark)
            self.bytes.add(_latin(form), _latin(mark))
        return True

    @property
    def empty(self) -> bool:
        """True while no secret is registered."""
        return self.text.begin is None

    def redact(self, text: str) -> str:
        """`text` with `[redacted:NAME]` for each secret; the same object when there is none."""
        parts: list[str] = []
        position = 0
        for start, end, mark in self.text.occurrences(text):
            parts += (text[position:start], mark)
            position = end
        return "".join((*parts, text[position:])) if parts else text

    def redact_json(self, value: Any) -> Any:
        """A JSON value with every text in it redacted, keys too; the value itself while no secret is registered."""
        return value if self.empty else self._redact_json(value)

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

    What could be the beginning of a secret is held back: never more than the longest form less one character. `reveal`
    characters (0 or `DELTA_REVEAL`) of such a beginning are given out all the same; of a secret only they can show.
    `latin`: the text is bytes decoded as Latin-1.
    """

    __slots__ = ("_matcher", "_reveal", "_shown", "_tail")

    def __init__(self, secrets: SecretRegistry, *, reveal: int = 0, latin: bool = False) -> None:
        self._matcher = secrets.bytes if latin else secrets.text
        self._reveal = reveal
        self._tail = ""  # the end of what was fed: given out up to `_shown`, held back from there
        self._shown = 0

    def feed(self, text: str) -> str:
        """Take the next piece; returns what can be given out now."""
        begin = self._matcher.begin
        if begin is None:
            return text
        whole = self._tail + text
        if self._reveal and begin(whole) is None:
            # nothing is held back now: what is held back begins a form by more characters than may be shown
            self._tail = tail = whole[-self._reveal :]
            self._shown = len(tail)
            return text
        return self._pass(whole, final=False)

    def finish(self) -> str:
        """The stream is over: what was held back. A next piece begins a new stream."""
        return self._pass(self._tail, final=True)

    def _pass(self, whole: str, *, final: bool) -> str:
        parts: list[str] = []
        position, shown = 0, self._shown
        held = len(whole) if final else self._matcher.unfinished(whole, 0)
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
        # a beginning that is given out stays known, or its secret would not be recognised
        begin = min(held, max(position, len(whole) - self._reveal))
        self._tail = "" if final else whole[begin:]
        self._shown = 0 if final else max(held, shown) - begin
        return "".join(parts)


class BytesRedactor:
    """The same, without reveal, for bytes of UTF-8 text or of anything else; code points may be split over pieces."""

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
        """The stream is over: what was held back."""
        return self._redactor.finish().encode("latin-1")


def _latin(text: str) -> str:
    return utf8(text).decode("latin-1")
