"""`python -m acp_bridge.testing.broken_agent [--fault NAME]…`: an ACP agent that breaks rules on request.

May not know: the conformance suite that it is the counter-example of. Standard library only. Invariant: with
`--fault none` it keeps every rule; each fault breaks exactly the rules that `FAULTS` names for it; without `--fault`
every fault is on that leaves the others visible.
"""

import argparse
import os
import signal
import sys
import threading
from typing import NoReturn

from acp_bridge.testing.broken_agent_faults import FAULTS
from acp_bridge.testing.broken_agent_methods import Agent


def main() -> NoReturn:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="broken_agent", description="An ACP agent that breaks rules on request.")
    parser.add_argument("--fault", action="append", choices=["none", *FAULTS], metavar="NAME", help="may be repeated")
    parser.add_argument("--list", action="store_true", help="print every fault with the rules it breaks")
    arguments = parser.parse_args()
    if arguments.list:
        # whoever reads may have seen enough: then this ends without a word, as other programs in a pipe do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for name, fault in FAULTS.items():
            rules = [f"{rule}*" if rule in fault.schema_only else rule for rule in fault.rules]
            sys.stdout.write(f"{name:28} {' '.join(rules):24} {fault.sentence}\n")
        sys.stdout.write("* seen with the official schema only (ACP_SCHEMA)\n")
        sys.exit(0)
    together = [name for name, fault in FAULTS.items() if not fault.alone]
    serve(frozenset(arguments.fault or together) - {"none"})


def serve(faults: frozenset[str]) -> NoReturn:
    """Be the agent that has these faults, on stdin and stdout."""
    # the protocol's descriptor is kept apart: what a tool prints goes to stderr
    output = os.dup(1)
    if "prints-on-stdout" not in faults:
        os.dup2(2, 1)
    agent = Agent(faults, output)
    told, tells = os.pipe()

    def end_when_told() -> None:
        os.read(told, 1)
        agent.end(flush=True)

    # not by the handler: it runs when the reading of the next line returns, which may be never
    threading.Thread(target=end_when_told, name="end", daemon=True).start()
    os.set_blocking(tells, False)
    signal.set_wakeup_fd(tells)
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    agent.serve(sys.stdin.buffer)


if __name__ == "__main__":
    main()
