"""Descriptors 0 and 1 belong to the protocol: real processes, real descriptors."""

import subprocess
import sys

import pytest

CLAIMED = """
import os, subprocess, sys
from acp_bridge.rpc.stdio import claim
stdio = claim()
print("a print")
sys.stdout.flush()
os.write(1, b"a write to 1\\n")
subprocess.run(["sh", "-c", "echo a child; cat"], check=True)
os.write(stdio.write_fd, b"frame " + os.read(stdio.read_fd, 100))
"""

LIGHT = """
import sys
before = set(sys.modules)
import acp_bridge.rpc.framing, acp_bridge.rpc.stdio, acp_bridge.rpc.codes
heavy = {"anyio", "asyncio", "dataclasses", "pydantic", "pydantic_core", "structlog", "jsonrpc_base", "json"}
assert not heavy & (set(sys.modules) - before)
"""

CLOSED = """
import os, sys
from acp_bridge.rpc.stdio import claim
for fd in {closed}:
    os.close(fd)
stdio = claim()
assert min(stdio) > 2, stdio
assert not os.get_inheritable(stdio.read_fd) and not os.get_inheritable(stdio.write_fd)
for fd in range(3):
    os.fstat(fd)
    assert os.get_inheritable(fd)
if 0 in {closed}:
    assert os.read(stdio.read_fd, 1) == b""
assert os.read(0, 1) == b""
os.write(stdio.write_fd, b"frame")
os.write(1, b"stray")
"""


def run(code: str, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True, **options)


def test_stray_output_lands_on_stderr_and_a_child_finds_no_input():
    done = run(CLAIMED, input=b"request")
    assert done.stdout == b"frame request"
    assert sorted(done.stderr.splitlines()) == [b"a child", b"a print", b"a write to 1"]


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_closed_standard_descriptors_are_filled_before_anything_else(closed):
    done = run(CLOSED.format(closed=closed), input=b"")
    assert done.stdout == (b"" if 1 in closed else b"frame")
    assert done.stderr == (b"" if 2 in closed else b"stray")


def test_the_light_modules_import_nothing_heavy():
    run(LIGHT)
