"""What keeps a process from being measured: loading the tool that measures costs more than most agents of tests."""

import os

UNMEASURED = {name: "" for name in os.environ if name.startswith("COVERAGE_")}
"""For the environment of an agent whose lines others run measured."""
