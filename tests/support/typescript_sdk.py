"""The official TypeScript SDK, installed once into this repository's environment, and what tells a story with it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.agent_process import LIMIT, AgentHome
from tests.support.official import agent_command
from tests.support.sdk_story import PERMISSIONS, PROMPTS, TERMINAL_OUTPUT, UNSAVED

# zod is what it parses frames with
PACKAGES = ("@agentclientprotocol/sdk@2.4.0", "zod@4")
MODULE = Path("node_modules/@agentclientprotocol/sdk/dist/v1/stable/acp.js")
SECONDS = 60
SYSTEM_TRUST = "/etc/ssl/certs/ca-certificates.crt"


def typescript_sdk() -> Path:
    """Its module. Skips the test where there is no node 20, or the packages cannot be had."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    folder = Path(sys.prefix, "typescript-sdk")
    if not (folder / MODULE).is_file():
        folder.mkdir(exist_ok=True)
        words = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), *PACKAGES]
        # node knows the authorities that it was built with, and not those that this machine trusts
        trusted = {"NODE_EXTRA_CA_CERTS": SYSTEM_TRUST} if Path(SYSTEM_TRUST).is_file() else {}
        env = {**os.environ, **trusted}
        try:
            result = subprocess.run(words, check=False, capture_output=True, text=True, timeout=SECONDS, env=env)
        except subprocess.TimeoutExpired:
            pytest.skip(f"the TypeScript SDK cannot be installed: npm took longer than {SECONDS} s")
        if result.returncode != 0:
            pytest.skip(f"the TypeScript SDK cannot be installed: {result.stderr.strip()[-300:]}")
    return folder / MODULE


async def tell_the_story(home: AgentHome, module: Path) -> dict[str, Any]:
    """What `expected` says of it."""
    (program,) = agent_command()
    story = {"command": program, "cwd": home.cwd, "prompts": PROMPTS, "permissions": PERMISSIONS}
    path = home.root / "story.json"
    path.write_text(json.dumps({**story, "unsaved": UNSAVED, "output": TERMINAL_OUTPUT}), encoding="utf-8")
    words = ["node", str(Path(__file__).with_name("sdk_story.mjs")), str(path)]
    with anyio.fail_after(LIMIT):
        result = await anyio.run_process(words, env=home.env | {"SDK_MODULE": module.as_uri()}, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)


if __name__ == "__main__":
    # what the gate does before its tests, which are to wait for no download
    try:
        typescript_sdk()
    except pytest.skip.Exception as missing:
        sys.exit(f"gate reduced: {missing} (the test of the official TypeScript client says that it is skipped)")
