"""Encloses an owner's commands with bubblewrap: namespaces, mounts, and what is said when the system refuses.

May not know: commands, results, sessions. Invariant: an enclosure has been tried with its very options before anything
is run in it; when it does not hold, nothing is run at all.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from glob import glob

import anyio

import bash_exec
from bash_exec.enclosure import Enclosure
from bash_exec.errors import SandboxUnavailable
from bash_exec.mounts import SYSTEM, MountPlan, is_below

# the file itself, not a virtual environment's link to it: neither the environment nor its folder is shown
INTERPRETER = (os.path.realpath(sys.executable), "-I", "-S")
_PACKAGE = os.path.dirname(os.path.abspath(bash_exec.__file__))
_ISOLATION = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--disable-userns",  # in a namespace of its own making, root could mount control groups
    "--cap-drop",  # root would keep its capabilities otherwise
    "ALL",
    "--die-with-parent",
    "--as-pid-1",
    "--chdir",
    "/",
)
_TRIAL = "import sys; sys.path.append(sys.argv[1]); import bash_exec.supervisor_main"
_OTHERWISE = 'or set executor = "local" to run commands without a sandbox'
_NAMESPACE_WORDS = ("namespace", "uid map", "gid map", "loopback", "mount proc")  # of bubblewrap's complaints


@dataclass(frozen=True, slots=True)
class Reach:
    """What commands reach besides their workspace. Paths are absolute; one that does not exist is left out."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False


class Bubblewrap(Enclosure):
    """`roots` names the workspace of an owner; `home` is hidden, and so are the `hidden` folders wherever they are.

    `trial_bound`: seconds that an enclosure may take to start.
    """

    def __init__(
        self,
        *,
        roots: Callable[[str], Sequence[str]],
        reach: Reach,
        home: str,
        hidden: Sequence[str],
        environment: Mapping[str, str],
        program: str = "bwrap",
        trial_bound: float = 10.0,
    ) -> None:
        self._roots = roots
        self._reach = reach
        self._home = home
        self._hidden = tuple(hidden)
        self._environment = dict(environment)
        self._program = program
        self._trial_bound = trial_bound

    async def prefix(self, owner: str) -> list[str]:
        network = () if self._reach.network else ("--unshare-net",)
        argv = [self._program, *_ISOLATION, *network, *self._plan(self._roots(owner)).arguments(), "--"]
        await self._try(argv)
        return argv

    def _plan(self, roots: Sequence[str]) -> MountPlan:
        self._check(roots)
        plan = MountPlan()
        plan.put_present("read", SYSTEM)
        plan.put("proc", ["/proc"])
        plan.put("dev", ["/dev"])
        plan.put("empty", ["/tmp", "/var/tmp"])  # noqa: S108 - mount points, not files
        plan.put_present("empty", {self._home} - {"/"})  # of the root nothing is shown that has no rule
        plan.put_present("read", self._reach.read)
        plan.put_present("write", self._reach.write)
        plan.put("write", roots)
        plan.put("read", [path for path in _interpreter_files() if not plan.shows(path)])
        for folder in filter(plan.shows, self._hidden):
            try:
                os.makedirs(folder, mode=0o700, exist_ok=True)  # else bubblewrap makes it, for everybody to read
            except OSError as error:
                raise SandboxUnavailable(f"the sandbox cannot hide {folder!r}: {error.strerror}") from error
            plan.put("empty", [folder])
        return plan

    def _check(self, roots: Sequence[str]) -> None:
        allowed = {os.path.realpath(path) for path in self._reach.write}
        home = os.path.realpath(self._home)
        for root in map(os.path.realpath, roots):
            if is_below(home, root) and root not in allowed:
                raise SandboxUnavailable(
                    f"the sandbox hides the home directory, and the session's directory {root!r} holds it: "
                    f"open a session in a project's folder, name {root!r} in [sandbox] allow_write, {_OTHERWISE}"
                )

    async def _try(self, argv: Sequence[str]) -> None:
        trial = [*argv, *INTERPRETER, "-c", _TRIAL, os.path.dirname(_PACKAGE)]
        try:
            with anyio.fail_after(self._trial_bound):
                done = await anyio.run_process(
                    trial, stdin=subprocess.DEVNULL, check=False, env=self._environment, start_new_session=True
                )
        except TimeoutError:
            raise SandboxUnavailable(
                f"the sandbox did not start within {self._trial_bound:g} seconds; run the command again, {_OTHERWISE}"
            ) from None
        except OSError as error:
            raise SandboxUnavailable(
                f"the sandbox cannot start: {self._program!r}: {error.strerror}; install bubblewrap "
                f"(the package has that name in most distributions), {_OTHERWISE}"
            ) from error
        if done.returncode:
            raise SandboxUnavailable(_explain(done.stderr.decode(errors="replace").strip(), done.returncode))


def _explain(said: str, status: int) -> str:
    reason = said.rpartition("\n")[2] or f"exit status {status}"
    if any(word in reason for word in _NAMESPACE_WORDS):
        fix = (
            "let this user create user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns or an AppArmor profile; a container needs them allowed)"
        )
    elif "nknown option" in reason:
        fix = "install bubblewrap 0.8 or newer"
    else:
        fix = "look at the session's directory and at [sandbox] in the configuration"
    return f"the sandbox cannot start: {reason}; {fix}, {_OTHERWISE}"


def _interpreter_files() -> list[str]:
    """What the supervisor's interpreter loads, no wider: it may stand in the home directory."""
    library = os.path.dirname(os.__file__)
    return [INTERPRETER[0], library, *glob(os.path.join(os.path.dirname(library), "libpython*")), _PACKAGE]
