"""Whether what was handed to the supervisor has started, and what to say when it has not.

May not know: what was started, or for whom. Invariant: returns only when it runs; a supervisor that did not answer is
replaced before this says so.
"""

from collections.abc import Callable

from bash_exec.control import Control
from bash_exec.errors import SpawnFailed
from bash_exec.supervisor import Supervisor


async def check_start(control: Control, supervisor: Supervisor, explain: Callable[[int, str], str]) -> None:
    """Call it once `control.begun` is set or the time for that is up. Raises `SpawnFailed`.

    `explain(errno, stage)` says why the start failed.
    """
    if control.failure is not None:
        raise SpawnFailed(explain(*control.failure))
    if control.shell is None and control.monitor is not None:
        raise SpawnFailed("the process above the command was stopped or killed while the command was starting")
    if not control.begun.is_set():
        await supervisor.replace()
        raise SpawnFailed("the supervisor of commands did not answer; it has been replaced, run the command again")
    if control.shell is None:
        raise SpawnFailed("the supervisor of commands ended while the command was starting; run it again")
