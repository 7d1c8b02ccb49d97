"""The command line of `dsh-acp-agent ui`.

May not know: servers. Invariant: what comes back can be carried out; everything else has ended the process with code 2.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PROGRAM: Final = "dsh-acp-agent ui"


@dataclass(frozen=True, slots=True)
class Invocation:
    """`port` 0: a free one. `config`: the file of `--config`."""

    port: int
    opens: bool
    config: str | None


def parse_arguments(argv: Sequence[str]) -> Invocation:
    """Read what follows the word `ui`. Raises `SystemExit` (0 after --help, 2 for what cannot be meant)."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Show the sessions of this machine, live, with their loops, on a local page in the browser.",
        epilog="The address holds a secret and is good until this command ends (Ctrl-C).",
        allow_abbrev=False,
    )
    parser.add_argument("--port", metavar="N", type=_port, default=0, help="listen there (default: a free port)")
    parser.add_argument("--no-open", action="store_true", help="print the address, open no browser")
    parser.add_argument("--config", metavar="FILE", help="configuration file (it names where the sessions lie)")
    given = parser.parse_args(argv)
    return Invocation(given.port, not given.no_open, given.config)


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError(text)
    return number
