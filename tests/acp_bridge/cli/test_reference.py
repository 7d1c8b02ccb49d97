"""The reference of all settings is a function of settings.py, and the document has the present one."""

import subprocess
import sys
from pathlib import Path

import pytest

from acp_bridge.cli.reference import BEGIN, END, settings_table, with_table

DOCUMENT = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_document_is_current():
    text = DOCUMENT.read_text("utf-8")
    assert with_table(text) == text, f"write it anew: python -m acp_bridge.cli.reference {DOCUMENT.name}"


def test_every_setting_says_what_it_is_for():
    lines = settings_table().splitlines()[2:]
    assert all(not line.endswith("|  |") for line in lines)
    assert len({line.split("`")[1] for line in lines}) == len(lines)


@pytest.mark.parametrize(
    "line",
    [
        '| `executor` | `local`, `sandbox` | `"local"` |  |  | where commands run |',
        "| `model` | text | – | `--model`, `DSH_MODEL` | yes | `provider/model`, ",
        "| `providers.NAME.models[].id` | text |  |  |  | what the provider calls the model |",
        "| `compaction.threshold` | number | `0.8` |  | yes | ",
        "| `sandbox.network` | `true`, `false` | `false` |  |  | ",
        "| `sandbox.allow_read` | list of text | – |  |  | ",
        "| `sessions.root` | path | – | `DSH_SNAPSHOT_SESSIONS_ROOT` |  | ",
    ],
)
def test_a_row_tells_what_a_setting_takes_and_who_else_sets_it(line):
    assert line in settings_table()


def test_what_stands_around_the_table_stays(tmp_path):
    file = tmp_path / "doc.md"
    file.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    subprocess.run([sys.executable, "-m", "acp_bridge.cli.reference", str(file)], check=True, timeout=30)
    assert file.read_text() == f"before\n{BEGIN}\n\n{settings_table()}\n{END}\nafter\n"


def test_a_document_without_the_marks_is_refused():
    with pytest.raises(ValueError, match="no place for the settings"):
        with_table("nothing")
