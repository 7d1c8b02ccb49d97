"""The log: stderr and a private rotating file, never stdout."""

import logging
import stat
from contextlib import contextmanager

import structlog

from acp_bridge.logs import Log


@contextmanager
def logs(directory, level="INFO"):
    """A configured log; the process's own logging is as before afterwards."""
    root = logging.getLogger()
    handlers, before, last_resort = root.handlers[:], root.level, logging.lastResort
    try:
        yield Log(directory, level, redact=lambda line: line.replace("sk-1", "[redacted]"))
    finally:
        logging.lastResort = last_resort
        ours = [handler for handler in root.handlers if handler not in handlers]
        root.handlers[:] = handlers
        root.setLevel(before)
        structlog.reset_defaults()
        for handler in ours:
            if isinstance(handler, logging.FileHandler):
                handler.close()


def mode(path):
    return oct(stat.S_IMODE(path.stat().st_mode))


def test_an_event_goes_to_stderr_and_to_a_private_file(tmp_path, capsys):
    directory = tmp_path / "made" / "on the way"
    with logs(directory) as log:
        log.warning("it happened", detail=3)
        log.debug("too fine")
    out, err = capsys.readouterr()
    written = (directory / "agent.log").read_text()
    assert out == ""
    for text in (err, written):
        assert "event='it happened' detail=3" in text
        assert "level='warning'" in text
        assert "too fine" not in text
    assert [mode(path) for path in (directory.parent, directory, directory / "agent.log")] == [
        "0o700",
        "0o700",
        "0o600",
    ]


def test_the_file_rotates_and_stays_private(tmp_path):
    with logs(tmp_path) as log:
        for _ in range(6):
            log.warning("x" * 1_000_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.log", "agent.log.1"]
    assert {mode(path) for path in tmp_path.iterdir()} == {"0o600"}


def test_an_exception_is_written_with_its_traceback(tmp_path, capsys):
    with logs(None) as log:
        try:
            raise ValueError("the reason")
        except ValueError as error:
            log.error("failed", exc_info=error)  # noqa: TRY400 - our own logger takes the exception
    assert "ValueError: the reason" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_said_and_nothing_else(tmp_path, capsys):
    (tmp_path / "file").touch()
    with logs(tmp_path / "file" / "log") as log:
        log.warning("hello")
    assert "event='no log file'" in capsys.readouterr().err


def test_an_unknown_level_is_said_and_read_as_info(capsys):
    with logs(None, "LOUD") as log:
        log.warning("still here")
        log.debug("not here")
    err = capsys.readouterr().err
    assert "event='unknown log level'" in err
    assert "wanted='LOUD'" in err
    assert "still here" in err
    assert "not here" not in err


def test_a_log_with_nothing_to_say_touches_nothing(tmp_path, capsys):
    with logs(tmp_path / "log") as log:
        log.debug("too fine")
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_no_secret_is_in_a_line_a_traceback_or_what_a_library_logs(tmp_path, capsys):
    with logs(tmp_path) as log:
        log.warning("key sk-1", detail={"in": "sk-1"})
        logging.getLogger("some.library").warning("with %s", "sk-1")
        try:
            raise ValueError("sk-1")
        except ValueError as error:
            log.error("failed", exc_info=error)  # noqa: TRY400 - our own logger takes the exception
    written = (tmp_path / "agent.log").read_text()
    for text in (capsys.readouterr().err, written):
        assert "sk-1" not in text
        assert "with [redacted]" in text
        assert "ValueError: [redacted]" in text


def test_what_a_library_logs_before_our_first_event_is_redacted_too(capsys):
    with logs(None):
        logging.getLogger().handlers.clear()
        logging.getLogger("some.library").warning("with sk-1")
        logging.getLogger("some.library").info("nothing of this")
    assert capsys.readouterr().err == "with [redacted]\n"
