"""Which of these tests measure the agents that they start: those that ask for it, because they alone run some line.

What the others make an agent run, tests within one process have measured: they are about what a process leaves
behind, answers or takes, and start many.
"""

import pytest


@pytest.fixture
def measured():
    """The lines of the agents that a test starts are measured."""


@pytest.fixture(autouse=True)
def _unmeasured_otherwise(request):
    if "measured" not in request.fixturenames:
        request.getfixturevalue("unmeasured")
