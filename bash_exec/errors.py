"""Why a command could not even be run.

May not know: what wanted to run it. Invariant: a message names the thing (path, shell, id) and the fix.
"""


class ExecutorError(Exception):
    """Infrastructure failed: nothing was started, or what was started has been ended."""


class InvalidCommand(ExecutorError):
    """The request itself is wrong (blank command, bad timeout, relative cwd)."""


class SpawnFailed(ExecutorError):
    """The shell could not be started (missing shell, missing directory, E2BIG, …)."""


class SandboxUnavailable(ExecutorError):
    """What should enclose the commands cannot be set up here: none is run."""


class AlreadyAborted(ExecutorError):
    """The caller's abort signal was set before anything was started."""


class UnknownTask(ExecutorError):
    """No background task has that id."""
