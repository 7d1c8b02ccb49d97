"""Background tasks: what is known of each, and who is told when one ends (contract tools-and-bash.md §2, §3).

May not know: how a command is started or killed. Invariant: a task's last status never changes; a listener that
raises hurts neither the task nor the other listeners.
"""

import logging
from collections.abc import Callable

import anyio

from bash_exec.command import RunningCommand
from bash_exec.output import BackgroundOutput
from bash_exec.seam import BackgroundTask, TaskOutput, TaskStatus

TaskListener = Callable[[BackgroundTask], None]
_log = logging.getLogger(__name__)


class TaskRecord:
    """One background task. `shown` is its command without secrets."""

    def __init__(self, task_id: str, command: RunningCommand, output: BackgroundOutput, *, shown: str) -> None:
        self.id = task_id
        self._shown = shown
        self.command = command
        self.output = output
        self.done = anyio.Event()
        self._status: TaskStatus = "running"

    @property
    def owner(self) -> str:
        """The session that started it."""
        return self.command.spec.owner

    def view(self) -> BackgroundTask:
        """Its present state."""
        command = self.command
        ended = self.done.is_set()
        return BackgroundTask(
            self.id,
            self.owner,
            self._shown,
            self._status,
            command.exit_code if ended else None,
            command.signal if ended else None,
        )

    def read(self, offset: int | None) -> TaskOutput:
        """What is new since the last read, or the output from `offset` on."""
        state = self.view()
        piece, path = self.output.read(offset, final=self.done.is_set())
        return TaskOutput(
            piece.text,
            state.status,
            state.exit_code,
            state.signal,
            piece.lost,
            path,
            piece.offset,
            piece.next_offset,
        )

    def finish(self) -> None:
        """The command has ended: fix the status."""
        self._status = "exited" if self.command.reason is None else "killed"
        self.done.set()


class TaskListeners:
    """Listeners for tasks that end by themselves."""

    def __init__(self) -> None:
        self._listeners: dict[object, TaskListener] = {}

    def add(self, listener: TaskListener) -> Callable[[], None]:
        """Register `listener`; returns a remover."""
        key = object()
        self._listeners[key] = listener

        def remove() -> None:
            self._listeners.pop(key, None)

        return remove

    def tell(self, task: BackgroundTask) -> None:
        """Call every listener."""
        for listener in list(self._listeners.values()):
            try:
                listener(task)
            except Exception:  # noqa: BLE001 - the listener wall
                _log.exception("a listener failed on the end of %s", task.id)

    def clear(self) -> None:
        """Silence them all."""
        self._listeners.clear()
