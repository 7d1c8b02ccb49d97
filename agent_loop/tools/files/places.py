"""From a path that the model wrote to the place that a tool may touch.

May not know: what is done there. Invariant: a place lies in a workspace root, or is a path that the permission policy
has decided on; both are judged by the path without any link.
"""

import os
from typing import Final

from agent_loop.tools.files.seam import FileProblem, Place
from agent_loop.tools.schema import Property
from agent_loop.tools.seam import ToolContext, resolved_path

FILE_PATH: Final = Property(
    "string", required=True, description="The file: absolute, or relative to the session's directory."
)
"""The parameter `file_path` of the tools for one file."""


def shown_path(path: str, cwd: str | None) -> str:
    """`path` absolute and normalised, links in it kept: what cards and sentences show."""
    return os.path.normpath(os.path.join(cwd or os.sep, path))


def short_path(path: str, cwd: str | None) -> str:
    """`path` relative to `cwd` where it lies below it, else absolute."""
    absolute = shown_path(path, cwd)
    relative = os.path.relpath(absolute, cwd or os.sep)
    return absolute if relative.startswith(os.pardir + os.sep) or relative == os.pardir else relative


def place_of(path: str, context: ToolContext) -> Place:
    """The place that `path` names. Raises `FileProblem` (`OUTSIDE`, and `NOT_FOUND` for what no path can be)."""
    if not path.strip() or "\0" in path:
        raise FileProblem(f"{path!r} is not a path", "NOT_FOUND")
    shown, real = shown_path(path, context.cwd), resolved_path(context.cwd, path)
    if os.path.realpath(shown) != real:
        # `link/..` is not where it seems to be
        shown = real
    inside = is_inside(real, context.roots)
    if not inside and real not in context.permitted:
        leads = "" if real == shown else f", it leads to {real}"
        raise FileProblem(
            f"{shown} is outside the workspace ({', '.join(context.roots)}){leads}, and nobody has allowed it",
            "OUTSIDE",
        )
    return Place(shown, real, inside)


def is_inside(real: str, roots: tuple[str, ...]) -> bool:
    """Whether `real` (without links) is one of the directories `roots`, or lies below one."""
    for root in roots:
        above = os.path.realpath(root)
        if real == above or real.startswith(above.rstrip(os.sep) + os.sep):
            return True
    return False
