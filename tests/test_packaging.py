"""What users install: the built wheel, on its own, and with the extra that tests other agents."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from email import message_from_bytes
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from acp_bridge.testing.model_thread import served

ROOT = Path(__file__).parent.parent
RUNTIME = {
    "anyio",
    "jsonrpc-base",
    "pydantic",
    "structlog",
    "httptools",
    "httpx2",
    "mcp",
    "truststore",
    "platformdirs",
    "rich",
    "markdown-it-py",
    "tree-sitter",
    "tree-sitter-bash",
}


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


def test_it_needs_the_libraries_that_are_named_here_and_offers_one_command(wheel):
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


# -- the test kit, where nothing else of this repository is -----------------------------------------------------------

AGENT = 'pytest --acp-agent "python sdk_kit_agent.py"'
STEPS = [
    {"op": "initialize"},
    {"op": "newSession"},
    {"op": "prompt", "text": "Say hello."},
    {"op": "promptAndCancel", "text": "Count to a million."},
]
SAID = [{"text": ["Hel", "lo."]}, {"stream": [{"text": ["1"]}, {"silence": True}]}]


class Shop:
    """A folder of somebody else: an environment, an agent on the official SDK, and nothing of ours but the wheel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"HOME": str(folder), "PATH": f"{folder / '.venv' / 'bin'}:{os.defpath}"}
        venv.create(folder / ".venv", symlinks=True)
        shutil.copy(ROOT / "tests" / "support" / "sdk_kit_agent.py", folder)

    def run(self, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """As its owner types it, in an activated environment."""
        return subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=3600,
        )

    def declare(self, source: str) -> Path:
        """A scenario `hello`; returns its folder."""
        hello = self.folder / "snapshots" / "hello"
        hello.mkdir(parents=True)
        (hello / "input.json").write_text(json.dumps({"steps": STEPS}))
        row = f'[[scenario]]\nname = "hello"\nhas_model_turn = true\nsource = "{source}"\n'
        (hello.parent / "scenarios.toml").write_text(f'[agent]\ncommand = ["python", "sdk_kit_agent.py"]\n\n{row}')
        return hello


def golden() -> list[dict]:
    """What the agent writes in that scenario."""
    session = {"sessionId": "{{sessionId}}"}
    card = {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "sdk-kit-agent", "version": "1"}}

    def result(number: int, value: dict) -> dict:
        return {"jsonrpc": "2.0", "id": number, "result": value}

    def chunk(text: str) -> dict:
        update = {"content": {"text": text, "type": "text"}, "sessionUpdate": "agent_message_chunk"}
        return {"jsonrpc": "2.0", "method": "session/update", "params": {**session, "update": update}}

    first = [result(1, card), result(2, session), chunk("Hel"), chunk("lo."), result(3, {"stopReason": "end_turn"})]
    return [*first, chunk("1"), result(4, {"stopReason": "cancelled"})]


def needed(found: Distribution, extras: set[str]) -> set[str]:
    """The names of all distributions that this one declares to need, with these extras."""
    names: set[str] = set()
    waiting = [(found, extras)]
    while waiting:
        each, wanted = waiting.pop()
        for text in each.requires or []:
            requirement = Requirement(text)
            applies = not requirement.marker or any(
                requirement.marker.evaluate({"extra": extra}) for extra in wanted | {""}
            )
            if applies and requirement.name not in names:
                names.add(requirement.name)
                waiting.append((distribution(requirement.name), requirement.extras))
    return names


def test_what_the_extra_declares_is_all_that_the_test_kit_needs_beside_a_foreign_agent(wheel, tmp_path):
    shop = Shop(tmp_path)
    (site,) = shop.folder.glob(".venv/lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (installed,) = site.glob("*.dist-info")
    files = [
        path for name in needed(Distribution.at(installed), {"testkit"}) for path in distribution(name).files or []
    ]
    tops = {path.parts[0]: path.locate().parents[len(path.parts) - 1] for path in files}
    for top in tops.keys() - {"..", "__pycache__"}:
        (site / top).symlink_to(tops[top] / top)
    # pip would have made this one
    command = tmp_path / ".venv" / "bin" / "pytest"
    command.write_text('#!/bin/sh\nexec python -P -m pytest "$@"\n')
    command.chmod(0o755)

    hello = shop.declare("authored")
    (hello / "model.json").write_text(json.dumps(SAID))
    (hello / "stdout.golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in golden()))
    chosen = "hello or folders or INIT-01 or CANCEL-06"
    done = shop.run(
        f"{AGENT} --acp-scenarios snapshots --acp-conformance --acp-strict -k '{chosen}' --acp-json out.json"
    )
    verdicts = {row["id"]: row["verdict"] for row in json.loads((tmp_path / "out.json").read_text())}
    assert verdicts == {"INIT-01": "ok", "CANCEL-06": "warning"}, done.stdout + done.stderr
    # strict as it is
    assert (done.returncode, "1 failed, 3 passed" in done.stdout) == (1, True), done.stdout


@pytest.mark.long
def test_an_environment_with_the_wheel_and_its_extra_holds_a_foreign_agent_against_every_rule(wheel, tmp_path):
    shop = Shop(tmp_path)
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / ".venv"), "install", "--quiet", f"{wheel}[testkit]"]
    subprocess.run(pip, check=True, timeout=600)
    shop.declare("recorded")
    with served(SAID) as provider:
        model = {"OPENAI_BASE_URL": f"{provider.base_url}/v1", "OPENAI_API_KEY": "key"}
        recorded = shop.run("pytest --acp-scenarios snapshots --acp-mode record -k hello", **model)
    assert "recorded hello" in recorded.stdout, recorded.stdout + recorded.stderr
    replayed = shop.run("pytest --acp-scenarios snapshots --acp-fuzz 2 --acp-report report.html")
    assert "4 passed" in replayed.stdout, replayed.stdout + replayed.stderr
    assert "Scenarios: 3, failed: 0" in (tmp_path / "report.html").read_text()

    done = shop.run(f"{AGENT} --acp-conformance --acp-json out.json")
    rows = json.loads((tmp_path / "out.json").read_text())
    assert len(rows) > 120
    broken = [row["id"] for row in rows if row["verdict"] == "broken"]
    # what the SDK does by itself is listed where all of its rules are run
    assert "MCP-01" in broken, done.stdout
    assert (done.returncode, f"{len(broken)} failed" in done.stdout) == (1, True), done.stdout
