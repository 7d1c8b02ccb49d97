"""The command line of `dsh-acp-agent sessions`, read into plain values.

May not know: stores, streams. Invariant: what comes back can be carried out as far as the words go; everything else has
ended the process with exit code 2 and a line that says what is wanted.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast, get_args

PROGRAM = "dsh-acp-agent sessions"

Format = Literal["md", "jsonl", "html"]
_FORMATS: Final[tuple[Format, ...]] = get_args(Format)


@dataclass(frozen=True, slots=True)
class ListSessions:
    """`cwd` None: of every directory; `limit` None: all."""

    cwd: str | None
    limit: int | None
    json: bool


@dataclass(frozen=True, slots=True)
class ShowSession:
    id: str
    thoughts: bool
    full: bool


@dataclass(frozen=True, slots=True)
class ExportSession:
    """`target` None: standard output."""

    id: str
    format: Format
    target: str | None
    force: bool


@dataclass(frozen=True, slots=True)
class ImportSession:
    """`cwd`: where the session belongs here; `mappings`: as they were given, `OLD=NEW`."""

    file: str
    cwd: str | None
    mappings: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class RepairSession:
    id: str


@dataclass(frozen=True, slots=True)
class DeleteSessions:
    ids: tuple[str, ...]
    yes: bool


Command = ListSessions | ShowSession | ExportSession | ImportSession | RepairSession | DeleteSessions


@dataclass(frozen=True, slots=True)
class Invocation:
    """`config`: the file of `--config`."""

    command: Command
    config: str | None


def parse_arguments(argv: Sequence[str]) -> Invocation:
    """Read what follows the word `sessions`. Raises `SystemExit` (0 after --help, 2 for what cannot be meant)."""
    given = _parser().parse_args(argv)
    return Invocation(_command(given), cast("str | None", getattr(given, "config", None)))


def _command(given: argparse.Namespace) -> Command:
    match given.command:
        case "list":
            return ListSessions(given.cwd, given.limit, given.json)
        case "show":
            return ShowSession(given.id, given.thoughts, given.full)
        case "export":
            target = None if given.output == "-" else given.output
            return ExportSession(given.id, given.format or _format_of(target), target, given.force)
        case "import":
            return ImportSession(given.file, given.cwd, tuple(given.map))
        case "repair":
            return RepairSession(given.id)
        case _:
            return DeleteSessions(tuple(given.id), given.yes)


def _format_of(target: str | None) -> Format:
    ending = os.path.splitext(target or "")[1].removeprefix(".")
    return ending if ending in _FORMATS else "md"


def _parser() -> argparse.ArgumentParser:
    # of every word, so that it may stand before and behind it
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--config",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="configuration file, as for the agent (it names where the sessions lie)",
    )
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="The stored sessions: look at them, pass them on, mend them, remove them.",
        epilog="An ID may be shortened as long as it means one session.",
        parents=[shared],
        allow_abbrev=False,
    )
    words = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def word(name: str, text: str) -> argparse.ArgumentParser:
        return words.add_parser(name, help=text, description=text, parents=[shared], allow_abbrev=False)

    list_ = word("list", "List the stored sessions, last used first.")
    list_.add_argument("--cwd", metavar="DIR", help="only those of this directory")
    list_.add_argument("--limit", metavar="N", type=_positive, help="at most N")
    list_.add_argument("--json", action="store_true", help="for programs: a JSON array")

    show = word("show", "Show a session as a transcript.")
    show.add_argument("id", metavar="ID")
    show.add_argument(
        "--thoughts", action=argparse.BooleanOptionalAction, default=True, help="with the model's thoughts"
    )
    show.add_argument("--full", action="store_true", help="leave nothing of long output out")

    export = word("export", "Write a session into a file that can be passed on; secrets are taken out.")
    export.add_argument("id", metavar="ID")
    export.add_argument(
        "--format",
        choices=_FORMATS,
        help="md and html are for reading; jsonl is the log, which `import` takes (default: as FILE ends, or md)",
    )
    export.add_argument("-o", "--output", metavar="FILE", default="-", help="where to (default: standard output)")
    export.add_argument("--force", action="store_true", help="replace a FILE that exists")

    import_ = word("import", "Take in a session that was exported as jsonl, or copied.")
    import_.add_argument("file", metavar="FILE")
    import_.add_argument("--cwd", metavar="DIR", help="the directory that it belongs to here")
    import_.add_argument(
        "--map", metavar="OLD=NEW", action="append", default=[], help="another path that is called NEW here"
    )

    repair = word("repair", "Mend a damaged session: what can be read is kept, the rest put aside.")
    repair.add_argument("id", metavar="ID")

    delete = word("delete", "Remove sessions for good.")
    delete.add_argument("id", metavar="ID", nargs="+")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
