"""Scenario folders whose agent is the stub."""

import json
import sys
from pathlib import Path
from typing import Any

from acp_bridge.testing.scenario import AgentProfile, Scenario

# without `site` nothing measures it: it is no part of the product
STUB = (sys.executable, "-S", str(Path(__file__).with_name("stub_agent.py")))


def prompt(text: str, **fields: Any) -> dict[str, Any]:
    return {"op": "prompt", "text": text, **fields}


def stub_scenario(folder: Path, *steps: dict[str, Any], source: Any = "recorded", **fields: Any) -> Scenario:
    """Writes `input.json` (initialize, newSession, then `steps`; `answers` = permissionAnswers)."""
    folder.mkdir(exist_ok=True, parents=True)
    answers = fields.pop("answers", None)
    script: dict[str, Any] = {"steps": [{"op": "initialize"}, {"op": "newSession"}, *steps]}
    if answers is not None:
        script["permissionAnswers"] = answers
    (folder / "input.json").write_text(json.dumps(script))
    profile = AgentProfile(
        command=STUB,
        settles_session="available_commands_update",
        replay_env="DSH_SNAPSHOT",
        log_glob="**/*.jsonl",
    )
    values: dict[str, Any] = {"has_model_turn": False, "profile": profile, **fields}
    return Scenario(folder, source=source, **values)
