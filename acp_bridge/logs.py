"""Logs for people who debug: structlog to stderr and a rotating file (acp.md §1).

May not know: what is logged. Invariant: nothing goes to stdout (an unconfigured structlog would), the file is 0600 in
a 0700 directory, no secret gets into a line, and a log that cannot be written never stops the agent. structlog is
imported with the first event that is written: a start that has nothing to say does not wait for it.
"""

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


class _RedactedLine(logging.Formatter):
    """Redacts whole lines, tracebacks and those of other libraries included."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


class Log:
    """A structlog logger that sets itself up when it is first needed.

    `directory` None = stderr only. `level`: the name of a logging level; an unknown one is said and read as INFO.
    `redact` takes the secrets out of a line.
    """

    def __init__(self, directory: Path | None, level: str, *, redact: Callable[[str], str]) -> None:
        levels = logging.getLevelNamesMapping()
        self._directory = directory
        self._threshold = levels.get(level, logging.INFO)
        self._logger: Any = None
        self._formatter = _RedactedLine(redact)
        # what other libraries say before our first event
        logging.lastResort = logging.StreamHandler(sys.stderr)
        logging.lastResort.setLevel(logging.WARNING)
        logging.lastResort.setFormatter(self._formatter)
        if level not in levels:
            self.warning("unknown log level", wanted=level, known=", ".join(levels))

    def debug(self, event: str, **details: Any) -> None:
        """For those who look closely."""
        self._write(logging.DEBUG, event, details)

    def warning(self, event: str, **details: Any) -> None:
        """Something is not as it should be; the agent goes on."""
        self._write(logging.WARNING, event, details)

    def error(self, event: str, **details: Any) -> None:
        """Something failed. `exc_info`: the exception whose traceback is wanted."""
        self._write(logging.ERROR, event, details)

    def _write(self, level: int, event: str, details: dict[str, Any]) -> None:
        if level < self._threshold:
            return
        if self._logger is None:
            self._logger = self._configure()
        self._logger.log(level, event, **details)

    def _configure(self) -> Any:
        import structlog  # noqa: PLC0415 - 75 ms and 1 MiB that a quiet run need not pay

        from acp_bridge.rotating_log import file_handler  # noqa: PLC0415 - another MiB

        handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
        problem: OSError | None = None
        if self._directory is not None:
            try:
                handlers.append(file_handler(self._directory))
            except OSError as error:
                problem = error
        for handler in handlers:
            handler.setFormatter(self._formatter)
        root = logging.getLogger()
        root.handlers[:] = handlers
        root.setLevel(self._threshold)
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
        logger = structlog.stdlib.get_logger("dsh-acp-agent")
        if problem is not None:
            logger.warning("no log file", directory=str(self._directory), error=str(problem))
        return logger
