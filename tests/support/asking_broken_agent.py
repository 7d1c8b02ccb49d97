"""The broken agent without a fault, which notes in the file $ASKED every fault that it looks for.

A fault that is not looked for in a check cannot change what comes of it.
"""

import os

from acp_bridge.testing.broken_agent import serve


class Asked(frozenset):
    """No faults. Each name that is looked for is noted once, before the answer has an effect."""

    def __init__(self):
        super().__init__()
        self._notes = os.open(os.environ["ASKED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._names = set()

    def __contains__(self, name):
        if name not in self._names:
            self._names.add(name)
            os.write(self._notes, f"{name}\n".encode())
        return False


if __name__ == "__main__":
    serve(Asked())
