"""What the command line of the agent says.

May not know: settings, what a flag does. Invariant: a start without flags does not wait for a parser of them.
"""

import os
import sys
from collections.abc import Mapping
from typing import Final

from acp_bridge import VERSION
from acp_bridge.config_file import Flags
from acp_bridge.permission.modes import MODE_IDS

COMMANDS: Final = {
    "sessions": "look at the stored sessions, export, import, repair and delete them",
    "ui": "show the sessions and their loops on a local page in the browser",
    "config": "show every setting, and where its value comes from",
    "login": "give the agent a provider's key",
    "logout": "take a key away again",
    "bench": "measure how fast the agent is, or another one",
}
"""What can be done beside serving an editor."""


def refuse_platform(platform: str) -> None:
    """Exit with one sentence where the agent cannot run; `platform` as in `sys.platform`."""
    if platform == "win32":
        raise SystemExit("dsh-acp-agent needs Linux or macOS; on Windows, install it in WSL and start it from there")


_TOLD = ("DSH_CONFIG", "DSH_MODEL", "DEEPSEEK_BASE_URL", "XDG_CONFIG_HOME")


def sign_in_place(argv: list[str]) -> int | None:
    """Where in `argv` the command `login` or `logout` stands; None when there is none.

    A client that runs `login` in a terminal puts it behind the flags with which it starts the agent.
    """
    return next(
        (
            place
            for place, word in enumerate(argv)
            # behind a flag of two words it is that flag's value
            if place
            and word in ("login", "logout")
            and not (argv[place - 1].startswith("--") and "=" not in argv[place - 1])
        ),
        None,
    )


def own_command(argv: list[str]) -> tuple[str, ...]:
    """What starts this agent again, flags included; the program is absolute. `argv` as in `sys.argv`."""
    program = os.path.abspath(argv[0])
    start = (program,) if os.access(program, os.X_OK) else (sys.executable, program)
    return (*start, *argv[1:])


def told_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that say which provider is meant and where, for a `login` that another program starts."""
    # what stands before an @ may be a password
    return {name: environment[name] for name in _TOLD if environment.get(name) and "@" not in environment[name]}


def parse_flags(argv: list[str]) -> Flags:
    """Exits 0 after `--help` and `--version`, 2 for what it does not know."""
    import argparse  # noqa: PLC0415 - editors start us without flags

    parser = argparse.ArgumentParser(
        prog="dsh-acp-agent",
        description="A coding agent for editors: Agent Client Protocol on stdin/stdout.",
        epilog="commands (each has a --help of its own):\n"
        + "".join(f"  {name:<20} {what}\n" for name, what in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"dsh-acp-agent {VERSION}")
    parser.add_argument(
        "--config", metavar="FILE", help="configuration file (default: config.toml in the user's config directory)"
    )
    parser.add_argument("--model", metavar="MODEL", help="model, provider/model, or provider")
    parser.add_argument("--permission-mode", choices=MODE_IDS, help="start mode of new sessions")
    if argv and not argv[0].startswith("-"):
        from difflib import get_close_matches  # noqa: PLC0415 - editors start us without a command

        near = get_close_matches(argv[0], list(COMMANDS), n=1)
        parser.error(f"there is no command {argv[0]!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    given = parser.parse_args(argv)
    return Flags(given.config, given.model, given.permission_mode)
