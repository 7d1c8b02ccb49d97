"""The executor that the settings ask for.

May not know: tools, agents. Invariant: what was chosen is what runs; a sandbox never falls back to none.
"""

from collections.abc import Callable, Mapping, Sequence

import platformdirs
from anyio.abc import TaskGroup

from acp_bridge.composition.start import Start
from acp_bridge.config_file import APP
from bash_exec.local import LocalBashExecutor
from bash_exec.seam import BashExecutor


def make_executor(
    start: Start,
    environment: Mapping[str, str],
    tasks: TaskGroup,
    *,
    roots: Callable[[str], Sequence[str]],
) -> BashExecutor:
    """Commands get `environment`; `roots(session_id)` are the directories that a sandboxed session may write."""
    settings = start.settings
    if settings.config.executor == "sandbox":
        from bash_exec.sandbox import Reach, SandboxBashExecutor

        reach = settings.config.sandbox
        return SandboxBashExecutor(
            task_group=tasks,
            environment=environment,
            spill_root=settings.spill_root,
            secrets=start.secrets,
            roots=roots,
            reach=Reach(reach.allow_read, reach.allow_write, reach.network),
            hidden=[str(settings.sessions_root), platformdirs.user_config_dir(APP)],
        )
    return LocalBashExecutor(
        task_group=tasks, environment=environment, spill_root=settings.spill_root, secrets=start.secrets
    )
