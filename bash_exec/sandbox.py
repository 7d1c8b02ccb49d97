"""Runs commands in a sandbox of their session (contract tools-and-bash.md §3: a second implementation of the seam).

May not know: the agent, its tools, its log. Invariant: a command runs in its owner's sandbox or not at all — there is
no way from here to a command that is not enclosed.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio.abc

from bash_exec.bubblewrap import INTERPRETER, Bubblewrap, Reach
from bash_exec.local import LocalBashExecutor
from bash_exec.seam import (
    Abort,
    BackgroundTask,
    BashExecutor,
    CommandRequest,
    CommandResult,
    CommandSpec,
    OutputListener,
    Survivor,
    TaskOutput,
)
from bash_exec.secrets import SecretRegistry

_OF_THE_HOST = frozenset({"TMPDIR", "XDG_RUNTIME_DIR"})  # they name folders that are not in there


class SandboxBashExecutor(BashExecutor):
    """A `LocalBashExecutor` whose supervisors, one per owner, each stand in a sandbox of bubblewrap.

    `roots(owner)` is the owner's workspace, read and written by its commands, asked for at its first command; `reach`
    is what all commands reach besides. `home` (None: this user's) is hidden but for what these name; `spill_root` and
    the folders of `hidden` are hidden whatever they name. The rest is as for `LocalBashExecutor`. Process numbers in
    results are those that the owner's commands see.
    """

    def __init__(
        self,
        *,
        task_group: anyio.abc.TaskGroup,
        environment: Mapping[str, str],
        spill_root: Path,
        roots: Callable[[str], Sequence[str]],
        reach: Reach,
        home: str | None = None,
        hidden: Sequence[str] = (),
        secrets: SecretRegistry | None = None,
        program: str = "bwrap",
        trial_bound: float = 10.0,
        grace: float = 3.0,
        drain: float = 0.2,
    ) -> None:
        inside = {name: value for name, value in environment.items() if name not in _OF_THE_HOST}
        enclosure = Bubblewrap(
            roots=roots,
            reach=reach,
            home=home or os.path.expanduser("~"),
            hidden=(str(spill_root), *hidden),
            environment=inside,
            program=program,
            trial_bound=trial_bound,
        )
        self._commands = LocalBashExecutor(
            task_group=task_group,
            environment=inside,
            spill_root=spill_root,
            secrets=secrets,
            grace=grace,
            drain=drain,
            portable=False,
            interpreter=INTERPRETER,
            enclosure=enclosure,
        )

    def resolve(self, request: CommandRequest) -> CommandSpec:
        return self._commands.resolve(request)

    async def run(
        self, spec: CommandSpec, *, abort: Abort | None = None, on_output: OutputListener | None = None
    ) -> CommandResult:
        return await self._commands.run(spec, abort=abort, on_output=on_output)

    async def start(self, spec: CommandSpec) -> BackgroundTask:
        return await self._commands.start(spec)

    def get(self, task_id: str) -> BackgroundTask | None:
        return self._commands.get(task_id)

    def owner_of(self, task_id: str) -> str | None:
        return self._commands.owner_of(task_id)

    def list(self, owner: str) -> list[BackgroundTask]:
        return self._commands.list(owner)

    def read_output(self, task_id: str, *, offset: int | None = None) -> TaskOutput:
        return self._commands.read_output(task_id, offset=offset)

    async def kill(self, task_id: str) -> BackgroundTask:
        return await self._commands.kill(task_id)

    def on_task_done(self, listener: Callable[[BackgroundTask], None]) -> Callable[[], None]:
        return self._commands.on_task_done(listener)

    async def release(self, owner: str) -> tuple[Survivor, ...]:
        return await self._commands.release(owner)

    async def dispose(self) -> None:
        await self._commands.dispose()
