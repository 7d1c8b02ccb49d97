"""What came of a rule: the exceptions by which a check speaks, and the results that they become.

May not know: processes, frames. Invariant: a result is plain data; its JSON form loses nothing that a reader or a
merge of several runs needs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from acp_bridge.testing.conformance.rule import Strength

Verdict = Literal["ok", "broken", "warning", "known", "skipped", "not-provoked"]
"""`warning`: broken, at a strength that fails a run only when it is strict. `known`: broken, and the user said so."""


SOFT = "warning: "
"""Begins a finding that breaks no more than a client's expectation, whatever the strength of its rule."""


class Broken(Exception):
    """The agent breaks the rule. The text says what was done, what was expected, what came."""


class NotProvoked(Exception):
    """The stimulus could not be made: the model was never asked, no tool runs commands. The text says which."""


@dataclass(frozen=True, slots=True)
class Result:
    """One rule after its check.

    `findings` maps ids of rules that hold over all frames of a run to what this check's frames broke of them.
    """

    id: str
    strength: Strength
    verdict: Verdict
    text: str = ""
    seconds: float = 0.0
    findings: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def record(self) -> dict[str, Any]:
        """The JSON form: `{id, strength, verdict, text, seconds}`, and `findings` where there are some."""
        row: dict[str, Any] = {
            "id": self.id,
            "strength": self.strength,
            "verdict": self.verdict,
            "text": self.text,
            "seconds": round(self.seconds, 3),
        }
        return row | ({"findings": {key: list(lines) for key, lines in self.findings.items()}} if self.findings else {})

    @staticmethod
    def from_record(row: Mapping[str, Any]) -> "Result":
        """The inverse of `record`."""
        found = cast("dict[str, list[str]]", row.get("findings", {}))
        findings = {key: tuple(lines) for key, lines in found.items()}
        return Result(row["id"], row["strength"], row["verdict"], row["text"], row["seconds"], findings)


def fails(result: Result, *, strict: bool = False) -> bool:
    """Whether this result makes a run fail."""
    return result.verdict == "broken" or (strict and result.verdict == "warning")


def exit_code(results: Iterable[Result], *, strict: bool = False) -> int:
    """1 when any result fails the run, else 0."""
    return int(any(fails(result, strict=strict) for result in results))
