"""For suites that every session store has to pass: the real one and the fake."""

import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.memory import MemorySessionStore


@pytest.fixture
def runtime():
    return VirtualRuntime()


@pytest.fixture(params=["jsonl", "memory"])
def store(request, tmp_path, runtime):
    return JsonlSessionStore(tmp_path / "root", runtime) if request.param == "jsonl" else MemorySessionStore()
