"""Run as a script: the console script, noting at each of its writes what has been imported by then.

One line per write goes to the file that `IMPORT_PROBE` names: the modules that were not there before `main` was.
"""

import os
import sys

before = set(sys.modules)
real_write = os.write
report = os.open(os.environ["IMPORT_PROBE"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def noting_write(descriptor, data):
    real_write(report, " ".join(sorted(set(sys.modules) - before)).encode() + b"\n")
    return real_write(descriptor, data)


os.write = noting_write

from acp_bridge.main import main  # noqa: E402 - what is imported from here on is what is measured

main()
