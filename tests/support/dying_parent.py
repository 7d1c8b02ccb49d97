"""Run as a script with a command as its arguments: gives that command a parent which dies at SIGUSR1.

This process is the grandparent: it adopts the command then, waits for it, and exits with its exit code.
"""

import ctypes
import os
import signal
import sys

_PR_SET_CHILD_SUBREAPER = 36

ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
parent = os.fork()
if parent == 0:
    os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
    while True:
        signal.pause()
signal.signal(signal.SIGUSR1, lambda *_: os.kill(parent, signal.SIGKILL))
os.waitpid(parent, 0)
_pid, status = os.wait()
sys.exit(os.waitstatus_to_exitcode(status))
