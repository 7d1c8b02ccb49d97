"""A folder of scenarios for the plugin, and how its tests run pytest inside pytest."""

import json
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from tests.support.stub_scenario import STUB, stub_scenario

FOREIGN = (sys.executable, "-S", str(Path(__file__).with_name("foreign_agent.py")))
# an installed distribution that declares the plugin has it loaded already
PLUGIN = () if entry_points(group="pytest11", name="acp") else ("-p", "acp_bridge.testing.plugin")
_UNUSED = ("cacheprovider", "hypothesispytest", "asyncio", "anyio", "pytest_cov")
# nobody looks at an assertion in there
PARALLEL = ("--assert=plain", *PLUGIN, *(word for name in _UNUSED for word in ("-p", f"no:{name}")))
PLAIN = (*PARALLEL, "-p", "no:xdist")


def scenario_folder(root: Path, *, foreign: bool = False, **scenarios: Any) -> Path:
    """`name=[step, …]`, or `name={"steps": […], "source": …, "model": […], …}`; the agent is a stub."""
    root.mkdir(exist_ok=True, parents=True)
    rows = ""
    for name, given in scenarios.items():
        fields = {"source": "recorded", **(given if isinstance(given, dict) else {"steps": given})}
        folder = stub_scenario(root / name, *fields["steps"], answers=fields.get("answers")).directory
        if "model" in fields:
            (folder / "model.json").write_text(json.dumps(fields["model"]))
        if "override" in fields:
            (folder / "replay.override.json").write_text(json.dumps(fields["override"]))
        rows += f'[[scenario]]\nname="{name}"\nhas_model_turn=true\nsource="{fields["source"]}"\n'
    agent = f"[agent]\ncommand={json.dumps(FOREIGN if foreign else STUB)}\n"
    agent += 'settles_session="available_commands_update"\n'
    if not foreign:
        agent += 'replay_env="DSH_SNAPSHOT"\nlog_glob="**/*.jsonl"\n'
    (root / "scenarios.toml").write_text(agent + rows)
    return root
