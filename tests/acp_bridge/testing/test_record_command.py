"""`bin/record`, with a stand-in for the environment that `bin/setup` makes."""

import shutil
import subprocess
from pathlib import Path

RECORD = Path(__file__).parents[3] / "bin" / "record"


def test_the_command_that_records_takes_the_providers_key_from_a_file_that_nothing_else_reads(tmp_path):
    shutil.copytree(RECORD.parent, tmp_path / "bin")
    (tmp_path / "bin" / "setup").write_text(f'cd {tmp_path}\nPATH="{tmp_path}:$PATH"\n')
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$* ${OPENAI_API_KEY-none} ${OPENAI_BASE_URL-none}"\n')
    python.chmod(0o755)

    def said() -> str:
        command = [tmp_path / "bin" / "record", "text-turn"]
        return subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True).stdout

    assert said() == "-m acp_bridge.testing record text-turn none none\n"
    (tmp_path / ".env").write_text("# of mine\nOPENAI_API_KEY=k\nOPENAI_BASE_URL='https://host/v1'\n")
    assert said() == "-m acp_bridge.testing record text-turn k https://host/v1\n"
