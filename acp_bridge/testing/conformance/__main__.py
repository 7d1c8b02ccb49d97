"""`python -m acp_bridge.testing.conformance --agent "COMMAND" [RULE…]`: the suite from the command line.

May not know: rules. Invariant: the exit code is 0 exactly when nothing failed, 2 when nothing could be run.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from acp_bridge.testing.conformance.suite import run_suite, table, to_json
from acp_bridge.testing.conformance.verdicts import exit_code


def main(argv: Sequence[str]) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m acp_bridge.testing.conformance", description="Hold an ACP agent against the protocol's rules."
    )
    parser.add_argument("--agent", required=True, metavar="COMMAND", help="starts the agent under test")
    parser.add_argument("--strict", action="store_true", help="what breaks a SHOULD, or a real client, fails as well")
    parser.add_argument("--known", default="", metavar="ID,…", help="rules that the agent is known to break")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="{model_url} is the model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("rules", nargs="*", metavar="RULE", help="ids; all rules when none is named")
    # options may stand between the rules, too
    given = parser.parse_intermixed_args(argv)
    env = dict(pair.partition("=")[::2] for pair in given.env)
    known = [rule_id for rule_id in given.known.split(",") if rule_id]
    try:
        results = run_suite(shlex.split(given.agent), known=known, only=given.rules, env=env)
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.write(table(results) + "\n")
    if given.json is not None:
        given.json.write_text(json.dumps(to_json(results), indent=1) + "\n", encoding="utf-8")
    return exit_code(results, strict=given.strict)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
