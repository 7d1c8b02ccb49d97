"""Logs for people who debug: structlog to stderr and a rotating file (acp.md §1).

May not know: what is logged. Invariant: nothing goes to stdout (an unconfigured structlog would), the file is 0600 in
a 0700 directory, and a log that cannot be written never stops the agent.
"""

import logging
import logging.handlers
import os
import sys
from pathlib import Path
from typing import Any

import structlog

_MAX_BYTES = 5 * 1024 * 1024
_KEPT = 2


class _PrivateRotatingFile(logging.handlers.RotatingFileHandler):
    """A rotating file that only its owner can read."""

    def _open(self) -> Any:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return open(descriptor, self.mode, encoding="utf-8")


def configure_logs(directory: Path | None, level: str) -> Any:
    """Set up both outputs and return the logger.

    `directory` None = stderr only. `level`: the name of a logging level; an unknown one is said and read as INFO.
    """
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    problem: OSError | None = None
    if directory is not None:
        try:
            # one by one: `parents=True` would give the parents that it makes to everybody
            for path in (*reversed(directory.parents), directory):
                path.mkdir(mode=0o700, exist_ok=True)
            handlers.append(
                _PrivateRotatingFile(directory / "agent.log", maxBytes=_MAX_BYTES, backupCount=_KEPT, encoding="utf-8")
            )
        except OSError as error:
            problem = error
    root = logging.getLogger()
    root.handlers[:] = handlers
    levels = logging.getLevelNamesMapping()
    root.setLevel(levels.get(level, logging.INFO))
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"], drop_missing=True),
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    log = structlog.stdlib.get_logger("dsh-acp-agent")
    if level not in levels:
        log.warning("unknown log level", wanted=level, known=", ".join(levels))
    if problem is not None:
        log.warning("no log file", directory=str(directory), error=str(problem))
    return log
