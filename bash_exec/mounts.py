"""What a sandbox shows of the file system: which path how, and that as mount options of bubblewrap.

May not know: processes, commands, which owner asks. Invariant: what no rule shows is not there; of two rules the one
for the deeper path wins, and for one path the later one.
"""

import os
from collections.abc import Iterable
from typing import Literal

Kind = Literal["read", "write", "empty", "proc", "dev"]

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/etc/resolv.conf",  # often a link to a place that is not shown
    "/opt",
    "/nix",
    "/run/current-system",
)
_OPTIONS = {"empty": "--tmpfs", "proc": "--proc", "dev": "--dev"}
_BINDS = {"read": "--ro-bind", "write": "--bind"}


class MountPlan:
    """Rules for paths. A path that is a symbolic link shows its target, and the link beside it."""

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._links: dict[str, str] = {}

    def put(self, kind: Kind, paths: Iterable[str]) -> None:
        """A rule for each absolute path of `paths`."""
        for path in paths:
            place, real = os.path.abspath(path), os.path.realpath(path)
            self._kinds[real] = kind
            if place != real:
                self._links[place] = real

    def put_present(self, kind: Kind, paths: Iterable[str]) -> None:
        """A rule for each path that exists."""
        self.put(kind, filter(os.path.exists, paths))

    def shows(self, path: str) -> bool:
        """True when the sandbox has what this machine has at `path`."""
        return self._shown(os.path.realpath(path))

    def _shown(self, place: str) -> bool:
        return self._rule(place) in _BINDS

    def _rule(self, place: str) -> Kind | None:
        """The rule that decides about an absolute path without links."""
        while place not in self._kinds:
            if place == "/":
                return None
            place = os.path.dirname(place)
        return self._kinds[place]

    def arguments(self) -> list[str]:
        """The options, in the order in which bubblewrap has to take them; at last nothing else can be made in `/`."""
        argv: list[str] = []
        for place in sorted(self._kinds, key=_depth):
            kind = self._kinds[place]
            if kind not in _BINDS:
                argv += [_OPTIONS[kind], place]
                if kind == "proc":  # root needs no capability to write kernel settings there
                    argv += ["--remount-ro", place]
            elif place == "/" or self._rule(os.path.dirname(place)) != kind:
                argv += [_BINDS[kind], place, place]
        for place in sorted(self._links, key=_depth):
            # what is bound has its links already; below another link there is nothing to make
            if not self._shown(os.path.dirname(place)) and not self._below_link(place):
                argv += ["--symlink", self._links[place], place]
        if self._kinds.get("/") != "write":
            argv += ["--remount-ro", "/"]
        return argv

    def _below_link(self, place: str) -> bool:
        return any(is_below(place, link) for link in self._links if link != place)


def is_below(path: str, folder: str) -> bool:
    """True when `path` is `folder` or stands in it; both absolute, without links."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _depth(path: str) -> tuple[int, str]:
    return path.rstrip("/").count("/"), path
