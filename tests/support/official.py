"""The agent under test and the official referee, as this repository's tests use them."""

import importlib
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from acp_bridge.testing.validate import Referee

SHARED_SCHEMA = Path(__file__).parents[3] / "shared" / "acp" / "schema-v1.json"


def agent_command() -> tuple[str, ...]:
    """The console script of the environment that runs the tests."""
    return (str(Path(sys.executable).with_name("dsh-acp-agent")),)


@cache
def referee() -> Referee:
    """Official models always, the official schema where it is found."""
    return Referee(environment=os.environ, schema=SHARED_SCHEMA)


@cache
def schema_referee() -> Referee:
    """The official schema alone: it knows what is newer than the models of the Python SDK (notices)."""
    return Referee(environment=os.environ, schema=SHARED_SCHEMA, load_module=_all_but_models)


def _all_but_models(name: str) -> Any:
    if name == "acp.schema":
        raise ImportError(name)
    return importlib.import_module(name)
