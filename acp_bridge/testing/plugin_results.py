"""What the items of a run left, gathered where the run is controlled: tables, files, the exit code.

May not know: how items run, or in which process. Invariant: a file is written once, at the end; what the frames of all
rules broke together fails the run as a single broken rule does, and pytest counts what the table counts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_bridge.testing.json_values import JsonObject
from acp_bridge.testing.plugin_options import Options


class Results:
    """A plugin of its own, registered in the controlling process only."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._left: list[JsonObject] = []
        self._reports: dict[str, pytest.TestReport] = {}
        self._rules = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what an item sent along."""
        left: JsonObject | None = getattr(report, "acp", None)
        if left is not None:
            self._left.append(left)
            if "result" in left:
                self._reports[left["result"]["id"]] = report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the files and settle the exit code, before others count what failed."""
        if self._options.conformance:
            self._settle(session)
        if self._options.report is not None:
            self._write_report(self._options.report)

    def _settle(self, session: pytest.Session) -> None:
        from acp_bridge.testing.conformance.manifest import RULES  # noqa: PLC0415 - only a run of rules pays for it
        from acp_bridge.testing.conformance.suite import settle, table, to_json  # noqa: PLC0415 - only a run of rules pays for it
        from acp_bridge.testing.conformance.verdicts import Result, exit_code, fails  # noqa: PLC0415 - only a run of rules pays for it
        from acp_bridge.testing.plugin_rules import told  # noqa: PLC0415 - only a run of rules pays for it

        order = {rule.id: number for number, rule in enumerate(RULES)}
        records = sorted((left["result"] for left in self._left if "result" in left), key=lambda row: order[row["id"]])
        alone = list(map(Result.from_record, records))
        results = settle(alone, known=self._options.known)
        self._rules = table(results)
        strict = self._options.strict
        late = [
            new
            for old, new in zip(alone, results, strict=True)
            if fails(new, strict=strict) and not fails(old, strict=strict)
        ]
        if late:
            names = ", ".join(result.id for result in late)
            self._rules += f"\nFAILED by the frames of other rules, though passed alone: {names}"
        for result in late:
            self._fail(session, self._reports[result.id], told(RULES[order[result.id]], result))
        if self._options.json is not None:
            text = json.dumps(to_json(results), ensure_ascii=False, indent=1)
            self._options.json.write_text(text + "\n", encoding="utf-8")
        if exit_code(results, strict=strict) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @staticmethod
    def _fail(session: pytest.Session, before: pytest.TestReport, text: str) -> None:
        """Count the item of this report as failed, and no more as what it was."""
        manager = session.config.pluginmanager
        counted: dict[str, list[object]] = getattr(manager.get_plugin("terminalreporter"), "stats", {})
        for reports in counted.values():
            if before in reports:
                reports.remove(before)
        after = pytest.TestReport(before.nodeid, before.location, before.keywords, "failed", text, "call")
        session.config.hook.pytest_runtest_logreport(report=after)

    def _write_report(self, path: Path) -> None:
        from acp_bridge.testing.report import ReportRun, write_report  # noqa: PLC0415 - only who wants it pays for it
        from acp_bridge.testing.run_record import run_from_record  # noqa: PLC0415 - only who wants a report pays for it

        runs = [
            ReportRun(left["name"], left["findings"], run_from_record(left["run"]), left["golden"])
            for left in sorted((left for left in self._left if "run" in left), key=lambda left: left["name"])
        ]
        write_report(path, runs)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the table of the rules, what a refresh changed, and which files there are now."""
        notes = [note for left in self._left for note in left.get("notes", ())]
        unchecked = dict.fromkeys(what for left in self._left for what in left.get("unchecked", ()))
        notes += [f"frames are not fully checked: {what}" for what in unchecked]
        if notes:
            terminalreporter.write_sep("=", "ACP scenarios")
            terminalreporter.write_line("\n".join(notes))
        if self._rules:
            terminalreporter.write_sep("=", "ACP conformance")
            terminalreporter.write_line(self._rules)
        for what, path in (("report", self._options.report), ("results", self._options.json)):
            if path is not None:
                terminalreporter.write_line(f"ACP {what}: {path}")
