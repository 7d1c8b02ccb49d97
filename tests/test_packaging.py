"""What users install: the built wheel, on its own."""

import json
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RUNTIME = {"anyio", "jsonrpc-base", "pydantic", "structlog", "httpx2", "platformdirs"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*pip, str(folder), str(ROOT)], check=True, timeout=300, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_three_houses_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"acp_bridge", "agent_loop", "bash_exec"}
    assert {f"{house}/py.typed" for house in ("acp_bridge", "agent_loop", "bash_exec")} <= set(names)


def test_it_needs_six_libraries_and_offers_one_command(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        (entries,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        described = message_from_bytes(archive.read(metadata))
        commands = archive.read(entries).decode()
    needed = [line for line in described.get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert {line.partition(">")[0] for line in needed} == RUNTIME
    assert "dsh-acp-agent = acp_bridge.main:main" in commands


def test_the_installed_package_answers(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    start = "import sys; sys.path.insert(0, sys.argv.pop()); from acp_bridge.main import main; main()"
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}) + "\n"
    done = subprocess.run(
        [sys.executable, "-c", start, str(tmp_path / "site")],
        input=asked.encode(),
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout)["result"]["agentInfo"]["name"] == "dsh-acp-agent"
