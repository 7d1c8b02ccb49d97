"""A run as JSON and back: how it travels from the process that made it to the one that writes the report.

May not know: pytest. Invariant: nothing is lost.
"""

from acp_bridge.testing.editor import Entry
from acp_bridge.testing.harness import Run
from acp_bridge.testing.json_values import JsonObject


def run_record(run: Run) -> JsonObject:
    """The JSON form."""
    return {
        "entries": [[entry.sender, entry.frame, entry.at] for entry in run.entries],
        "raw": run.raw.decode("latin-1"),
        "transcript": run.transcript,
        "logs": run.logs,
        "report": run.report,
        "failures": run.failures,
        "stderr": run.stderr,
        "cwd": run.cwd,
        "began": run.began,
    }


def run_from_record(record: JsonObject) -> Run:
    """The inverse of `run_record`."""
    rest = {name: value for name, value in record.items() if name not in {"entries", "raw"}}
    entries = tuple(Entry(*row) for row in record["entries"])
    return Run(entries=entries, raw=record["raw"].encode("latin-1"), **rest)
