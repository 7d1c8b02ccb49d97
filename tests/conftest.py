"""For the whole suite: hypothesis profiles, Ctrl-C, and agents that are not measured.

Profiles: `default` is quick, `long` (bin/test --long) digs. No deadline: shared machines are noisy.
"""

import os
import signal
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings
from pytest_asyncio import is_async_test

settings.register_profile(
    "default", deadline=None, max_examples=60, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("default"), max_examples=1500)
settings.load_profile("default")

# a suite that a shell has put into the background was told to ignore SIGINT, and so would be every program under test
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# callbacks of the loop make anyio's objects: where sniffio is installed it must be told what runs, as anyio.run does;
# for tests on the loop of pytest-asyncio alone, as the others may call anyio.run themselves
with suppress(ModuleNotFoundError):
    import sniffio

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(item):
        sniffio.thread_local.name = "asyncio" if is_async_test(item) else None
        return (yield)


@pytest.fixture
def unmeasured(monkeypatch):
    """The lines of the agents that a test starts are not measured: they take twice as long to start when they are."""
    for name in list(os.environ):
        if name.startswith("COVERAGE_"):
            monkeypatch.delenv(name)
