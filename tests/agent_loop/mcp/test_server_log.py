"""What a server writes to its stderr."""

from agent_loop.mcp.server_log import ServerLog
from bash_exec.secrets import SecretRegistry


def test_secrets_are_redacted_wherever_they_are_cut(tmp_path):
    secrets = SecretRegistry()
    secrets.add("KEY", "hunter2-hunter3")
    log = ServerLog(str(tmp_path / "logs" / "s.log"), secrets)
    log.write(b"it is hunter2-hun")
    log.write(b"ter3\nand so on")
    log.close()
    log.close()
    assert (tmp_path / "logs" / "s.log").read_text() == "it is [redacted:KEY]\nand so on"


def test_the_last_line_that_says_something_is_known(tmp_path):
    log = ServerLog(str(tmp_path / "s.log"), SecretRegistry())
    assert log.last_words == ""
    log.write(b"first\n  second \n\n")
    assert log.last_words == "second"
    log.close()


def test_a_full_file_is_kept_once_and_begun_anew(tmp_path):
    path = tmp_path / "s.log"
    log = ServerLog(str(path), SecretRegistry(), cap=10)
    for text in (b"12345\n", b"6789\n", b"next\n"):
        log.write(text)
    log.close()
    assert (path.read_bytes(), (tmp_path / "s.log.old").read_bytes()) == (b"6789\nnext\n", b"12345\n")
    again = ServerLog(str(path), SecretRegistry(), cap=10)
    again.write(b"a line that is longer than the file may be")
    again.close()
    assert path.read_bytes() == b"a line tha"


def test_a_file_that_cannot_be_written_stops_nobody(tmp_path):
    (tmp_path / "logs").write_text("in the way")
    log = ServerLog(str(tmp_path / "logs" / "s.log"), SecretRegistry())
    log.write(b"lost\n")
    log.write(b"too\n")
    assert log.last_words == "lost"
    log.close()
