"""Which of these tests measure the agents that they start.

An agent that is measured takes twice as long to start. What these tests make it run, others have measured: they are
about what a process leaves behind, answers or takes, and start many.
"""

import os

import pytest

UNMEASURED = ("test_big_sessions", "test_garbage", "test_kill", "test_many_sessions", "test_secrets")


@pytest.fixture(autouse=True)
def _unmeasured(request, monkeypatch):
    if request.module.__name__.rpartition(".")[2] in UNMEASURED:
        for name in list(os.environ):
            if name.startswith("COVERAGE_"):
                monkeypatch.delenv(name)
