"""An interpreter for the supervisor in which some system calls fail: `patched_python.py FAULT -c CODE ARGUMENTS…`."""

import errno
import os
import sys


def no_fork() -> int:
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def no_signal(_pid: int, _number: int) -> None:
    """Every process is unkillable."""


fault, _flag, code, *arguments = sys.argv[1:]
if fault == "no-fork":
    os.fork = no_fork
elif fault == "no-kill":
    os.kill = os.killpg = no_signal
elif fault == "dies":
    sys.exit(0)
elif fault == "broken-monitor":
    os.posix_spawnp = None
sys.argv = ["-c", *arguments]
exec(code)  # noqa: S102 - it stands for the interpreter
