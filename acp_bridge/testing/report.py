"""Writes what came of scenarios as one self-contained HTML page (`pytest --acp-report FILE.html`).

May not know: how runs are made or judged. Invariant: every text of a run is escaped, and the page holds no script and
forbids them, so that nothing an agent says can act; it loads nothing. What looks like a secret is not shown.
"""

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from acp_bridge.testing.compare import field_differences
from acp_bridge.testing.guards import SECRETS
from acp_bridge.testing.harness import Run
from acp_bridge.testing.json_values import JsonObject, as_list, as_object
from acp_bridge.testing.report_lanes import CONNECTION, Signal, signals, turns
from acp_bridge.testing.report_rows import Row, align, asked_methods, kind, line, stretches

_NEIGHBOURS = 3  # equal frames shown on each side of a differing one
# control characters have pictures: an HTML page may not hold them, and a reader should see them
_VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
# of a private key the guards know the first line; all that follows it is the key
_SECRET = re.compile(rf"-----BEGIN [A-Z ]*PRIVATE KEY-----.*|{SECRETS.pattern}", re.DOTALL)
_STYLES = {
    "agent_message_chunk": "said",
    "agent_thought_chunk": "thought",
    "tool_call": "tool",
    "tool_call_update": "tool",
    "session/request_permission": "asked",
    "elicitation/create": "asked",
}
_LEGEND = (
    '<p class="legend"><b class="turn"></b>prompt until its answer<b class="client"></b>editor'
    '<b class="said"></b>message<b class="thought"></b>thought<b class="tool"></b>tool call'
    '<b class="asked"></b>question to the user<b class="other"></b>other of the agent</p>'
)


@dataclass(frozen=True, slots=True)
class ReportRun:
    """One scenario that ran. `findings` are those of `judge`; `expected` is the golden, None when there is none."""

    name: str
    findings: Sequence[str]
    run: Run
    expected: Sequence[JsonObject] | None = None


def write_report(path: Path, runs: Sequence[ReportRun], *, title: str = "ACP snapshot report") -> None:
    """Write the page, as UTF-8. Raises `OSError`."""
    parts = [_Scenario(number, run) for number, run in enumerate(runs, start=1)]
    failed = sum(bool(run.findings) for run in runs)
    template = files("acp_bridge.testing").joinpath("report_page.html").read_text(encoding="utf-8")
    page = Template(template).substitute(
        title=_text(title),
        counts=f"Scenarios: {len(runs)}, failed: {failed}, passed: {len(runs) - failed}",
        overview="\n".join(part.overview() for part in parts),
        scenarios="\n".join(part.section() for part in parts),
    )
    # JSON may hold half a surrogate pair; UTF-8 may not
    path.write_text(page, encoding="utf-8", errors="backslashreplace", newline="\n")


class _Scenario:
    """The HTML of one scenario. The ids on the page begin with `s1`; its differing rows are `s1-d1`, `s1-d2`, …"""

    def __init__(self, number: int, shown: ReportRun) -> None:
        self._id = f"s{number}"
        self._name = _text(shown.name)
        self._compared = shown.expected is not None
        self._findings = [_text(_covered(finding)) for finding in shown.findings]
        self._asked = asked_methods(shown.run.entries, "client")
        found: list[JsonObject] = _covered(shown.run.transcript)
        self._rows = align(found if shown.expected is None else _covered(list(shown.expected)), found, self._asked)
        self._frames = len(found)
        self._differing = sum(row.mark != "same" for row in self._rows)
        self._wire = [replace(signal, frame=_covered(signal.frame)) for signal in signals(shown.run.entries)]
        self._seconds = self._wire[-1].at if self._wire else 0.0
        self._lanes = list(dict.fromkeys(signal.lane for signal in self._wire))
        word = "failed" if shown.findings else "passed"
        self._verdict = f'<span class="verdict {word}">{word}</span>'

    def overview(self) -> str:
        """The row of the table at the top."""
        lead = self._findings[0].split("\n", maxsplit=1)[0] if self._findings else ""
        jump = f'<a href="#{self._id}-d1">{self._differing}</a>' if self._differing else "0"
        sessions = len(set(self._lanes) - {CONNECTION})
        return (
            f'<tr><th scope="row"><a href="#{self._id}">{self._name}</a></th><td>{self._verdict}</td>'
            f'<td class="number">{self._frames}</td><td class="number">{jump}</td><td class="number">{sessions}</td>'
            f'<td class="number">{self._seconds:.2f} s</td><td>{lead}</td></tr>'
        )

    def section(self) -> str:
        """Everything about the scenario; open when it failed. A browser opens it for a link to what stands inside."""
        opened = " open" if self._findings else ""
        summary = f"<summary><h2>{self._name}</h2>{self._verdict}{self._about()}</summary>"
        parts = [*self._found(), *self._timing(), *self._comparison(), *self._both_sides()]
        body = "\n".join(parts)
        return f'<details class="scenario"{opened}>{summary}<div id="{self._id}">\n{body}\n</div></details>'

    def _about(self) -> str:
        compared = f"{self._differing} of {len(self._rows)} rows differ"
        about = compared if self._compared else "no golden: nothing was compared"
        return f'<span class="about">{about}</span>'

    def _found(self) -> Iterator[str]:
        if self._findings:
            yield "<h3>Findings</h3>"
            yield from (f"<pre>{finding}</pre>" for finding in self._findings)

    def _timing(self) -> Iterator[str]:
        yield '<h3>Timing</h3><div class="lanes">'
        scale = 1000 / (self._seconds or 1.0)
        prompts = turns(self._wire)
        for lane in self._lanes:
            own = [signal for signal in self._wire if signal.lane == lane]
            spans = "".join(
                f'<rect x="{turn.start * scale:.1f}" width="{(turn.end - turn.start) * scale:.1f}" height="28"/>'
                for turn in prompts
                if turn.lane == lane
            )
            marks = "".join(_mark(signal, signal.at * scale) for signal in own)
            yield (
                f'<span class="lane-name">{lane}</span>'
                '<svg viewBox="0 0 1000 28" preserveAspectRatio="none" role="img" '
                f'aria-label="{lane}: {len(own)} frames, {sum(turn.lane == lane for turn in prompts)} prompts">'
                f"{spans}{marks}</svg>"
            )
        steps = "".join(f"<span>{self._seconds * step / 4:.2f} s</span>" for step in range(5))
        yield f'<span></span><div class="scale">{steps}</div></div>{_LEGEND}'

    def _comparison(self) -> Iterator[str]:
        fold = ""
        if self._differing:
            fold = '<label><input type="checkbox" checked> only what stands near a difference</label>'
        yield (
            f'<h3>Transcript of the agent</h3><div class="comparison">{fold}<table class="frames"><thead><tr>'
            '<th scope="col" class="mark">Row</th><th scope="col">Expected (golden)</th><th scope="col">This run</th>'
            "</tr></thead>"
        )
        row_number = difference = 0
        for visible, rows in stretches(self._rows, distance=_NEIGHBOURS):
            if self._differing and not visible:
                yield f'<tbody class="fold"><tr><td colspan="3">{len(rows)} equal frames</td></tr></tbody>'
                yield '<tbody class="far">'
            else:
                yield "<tbody>"
            for row in rows:
                row_number += 1
                difference += row.mark != "same"
                yield self._row(row, row_number, difference)
            yield "</tbody>"
        yield "</table></div>"

    def _row(self, row: Row, number: int, difference: int) -> str:
        if row.mark == "same":
            # the golden is the same frame: once is enough
            left = self._line(row.found)
            return (
                f'<tr><td class="mark">{number}</td><td class="quiet">{left}</td><td>{self._frame(row.found)}</td></tr>'
            )
        around = "".join(
            f' <a href="#{self._id}-d{other}" aria-label="{word} difference">{arrow}</a>'
            for other, word, arrow in ((difference - 1, "previous", "↑"), (difference + 1, "next", "↓"))
            if 1 <= other <= self._differing
        )
        cells = "".join(f"<td>{self._frame(frame)}</td>" for frame in (row.expected, row.found))
        return (
            f'<tr class="{row.mark}" id="{self._id}-d{difference}" tabindex="-1">'
            f'<td class="mark">{number} {row.mark}{around}</td>{cells}</tr>{_fields(row)}'
        )

    def _line(self, frame: JsonObject | None) -> str:
        return f"<b>{_text(kind(frame, self._asked))}</b> {_text(line(frame))}" if frame is not None else "—"

    def _frame(self, frame: JsonObject | None) -> str:
        return _raw(self._line(frame), frame) if frame is not None else "—"

    def _both_sides(self) -> Iterator[str]:
        """The wire of both sides, with times."""
        yield (
            f"<details><summary><h3>All {len(self._wire)} frames of the wire, both sides</h3></summary>"
            '<table class="frames"><thead><tr>'
            '<th scope="col" class="at">Time</th><th scope="col" class="lane">Lane</th>'
            '<th scope="col" class="lane">From</th><th scope="col">Frame</th></tr></thead><tbody>'
        )
        for signal in self._wire:
            said = f"<b>{_text(signal.kind)}</b> {_text(line(signal.frame))}"
            yield (
                f'<tr><td class="at">{signal.at:.3f} s</td><td>{signal.lane}</td><td>{signal.sender}</td>'
                f"<td>{_raw(said, signal.frame)}</td></tr>"
            )
        yield "</tbody></table></details>"


def _fields(row: Row) -> str:
    if row.mark != "changed":
        return ""
    fields = "".join(
        f"<dt>{_text(path)}</dt><dd><del>{_text(before)}</del></dd><dd><ins>{_text(after)}</ins></dd>"
        for path, before, after in field_differences("$", row.expected, row.found)
    )
    return f'<tr class="fields"><td class="mark"></td><td colspan="2"><dl>{fields}</dl></td></tr>'


def _mark(signal: Signal, x: float) -> str:
    """The editor's frames in the upper half of the lane, the agent's in the lower one."""
    top, bottom = (1, 14) if signal.sender == "client" else (14, 27)
    style = "client" if signal.sender == "client" else _STYLES.get(signal.kind, "other")
    said = _text(f"{signal.at:.3f} s, {signal.sender}: {signal.kind}")
    return f'<line class="{style}" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"><title>{said}</title></line>'


def _raw(summary: str, frame: JsonObject) -> str:
    whole = json.dumps(frame, ensure_ascii=False, indent=2)
    return f"<details><summary>{summary}</summary><pre>{_text(whole)}</pre></details>"


def _text(text: str) -> str:
    return html.escape(text.translate(_VISIBLE))


def _covered(value: Any) -> Any:
    """`value` without what looks like a secret, at any depth."""
    if isinstance(value, str):
        return _SECRET.sub("[looks like a secret]", value)
    if (items := as_list(value)) is not None:
        return [_covered(item) for item in items]
    if (table := as_object(value)) is not None:
        return {_covered(key): _covered(item) for key, item in table.items()}
    return value
