"""The listing of log files: what is read of them, how often, and what becomes of a bad index."""

import errno
import os
import socket
import sqlite3
import stat
import threading
from contextlib import closing

import pytest

from agent_loop.runtime import VirtualRuntime
from agent_loop.session.codec import encode_event, encode_header
from agent_loop.session.events import SessionHeader, make_event
from agent_loop.session.index import NAME, SessionIndex
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.layout import log_path
from agent_loop.session.outline import Outline, read_outline
from agent_loop.session.store import SessionStoreError
from tests.support.session_turns import text_turn

TITLE = ("session/title", {"title": "the title", "by": "user"})


def lines_of(pairs, first=0):
    return [
        encode_event(make_event(kind, seq, 1000 + seq, data)) for seq, (kind, data) in enumerate(pairs, start=first)
    ]


def turn_padding(text):
    return "command/run", {"commandId": "c", "line": text}


def write(root, session_id="s", cwd="/there", lines=(), header=None):
    path = log_path(root, session_id, cwd)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((header or encode_header(SessionHeader(session_id, 7, cwd=cwd))) + b"".join(lines))
    return path


def listed(root, **options):
    return {row.id: row for row in SessionIndex(root, **options).summaries()}


def kept(root):
    """What the index holds, by file."""
    with closing(sqlite3.connect(root / NAME)) as connection:
        return dict(connection.execute("SELECT file, event_count FROM logs"))


def test_the_index_is_private_and_holds_what_was_read(tmp_path):
    path = write(tmp_path, lines=lines_of([TITLE, *text_turn(1)]))
    assert listed(tmp_path)["s"].event_count == 8
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert kept(tmp_path) == {f"{path.parent.name}/{path.name}": 8}


def test_an_unchanged_log_is_not_read_again(tmp_path):
    path = write(tmp_path, lines=lines_of(text_turn(1)))
    assert listed(tmp_path)["s"].event_count == 7
    with closing(sqlite3.connect(tmp_path / NAME)) as connection:
        connection.execute("UPDATE logs SET title = 'from the index'")
        connection.commit()
    assert listed(tmp_path)["s"].title == "from the index"
    os.utime(path, ns=(1, 1))
    assert listed(tmp_path)["s"].title == "from the index", "what was read stays true: a log only grows"


def test_of_a_log_that_has_grown_only_the_new_lines_are_read(tmp_path):
    path = write(tmp_path, lines=lines_of([TITLE, *text_turn(1)]))
    known = read_outline(tmp_path, f"{path.parent.name}/{path.name}", None)
    assert listed(tmp_path)["s"].title == "the title"
    # what was read already is made unreadable: nobody looks there
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"#" * (len(content) - 101) + b"\n")
    with path.open("ab") as file:
        file.writelines(lines_of(text_turn(2), first=8))
    row = listed(tmp_path)["s"]
    assert (row.title, row.event_count, row.updated_at) == ("the title", 15, 1014)
    now = read_outline(tmp_path, f"{path.parent.name}/{path.name}", known)
    assert now.read_to == now.size == path.stat().st_size


def test_a_line_that_is_not_whole_yet_is_not_counted_until_it_is(tmp_path):
    lines = lines_of([*text_turn(1), TITLE])
    path = write(tmp_path, lines=[*lines[:-1], lines[-1][:-5]])
    assert (listed(tmp_path)["s"].event_count, listed(tmp_path)["s"].title) == (7, None)
    with path.open("ab") as file:
        file.write(lines[-1][-5:])
    assert (listed(tmp_path)["s"].event_count, listed(tmp_path)["s"].title) == (8, "the title")


def test_a_log_that_was_cut_or_replaced_is_read_anew(tmp_path):
    path = write(tmp_path, lines=lines_of([*text_turn(1), TITLE]))
    assert listed(tmp_path)["s"].title == "the title"
    write(tmp_path, lines=lines_of(text_turn(1)))
    assert (listed(tmp_path)["s"].event_count, listed(tmp_path)["s"].title) == (7, None)
    other = tmp_path / "other"
    other.write_bytes(path.read_bytes() + b"".join(lines_of([TITLE], first=7)))
    other.replace(path)
    assert listed(tmp_path)["s"].title == "the title"
    # cut and grown in between: what follows is not the next event
    write(tmp_path, lines=lines_of([*text_turn(1, "x" * 500), *text_turn(2)]))
    assert (listed(tmp_path)["s"].event_count, listed(tmp_path)["s"].title) == (14, None)


def test_a_log_that_is_gone_leaves_the_index(tmp_path):
    path = write(tmp_path, lines=lines_of(text_turn(1)))
    write(tmp_path, "t")
    assert listed(tmp_path).keys() == {"s", "t"}
    path.unlink()
    assert listed(tmp_path).keys() == {"t"}
    assert len(kept(tmp_path)) == 1


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"garbage\n",
        b'{"type":"session"',
        b'{"type":"session","version":99,"id":"s","createdAt":1,"cwd":"/there"}\n',
        encode_header(SessionHeader("another", 7, cwd="/there")),
        encode_header(SessionHeader("s", 7, cwd="/elsewhere")),
        encode_header(SessionHeader("", 7, cwd="/there")),
    ],
)
def test_a_file_that_a_load_would_not_open_is_left_out(tmp_path, header):
    write(tmp_path, "good")
    write(tmp_path, header=header or b" ")
    for _ in range(2):
        assert listed(tmp_path).keys() == {"good"}


def test_whatever_else_lies_there_is_left_out(tmp_path, monkeypatch):
    path = write(tmp_path, "good")
    bucket = path.parent
    (bucket / "notes.txt").write_text("x")
    (bucket / "folder.jsonl").mkdir()
    os.mkfifo(bucket / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(bucket)  # the name of a socket is short
        listening.bind("socket.jsonl")
    (bucket / "dangling.jsonl").symlink_to("nowhere")
    (bucket / "\u00e4.jsonl").write_bytes(path.read_bytes())
    os.close(os.open(os.fsencode(bucket) + b"/\xff.jsonl", os.O_CREAT | os.O_WRONLY))
    (tmp_path / "stray.jsonl").write_bytes(path.read_bytes())
    assert listed(tmp_path).keys() == {"good"}


def test_a_damaged_log_is_listed_with_its_last_good_line(tmp_path):
    lines = lines_of([TITLE, *text_turn(1)])
    bad = [b'{"type":"session/title","seq":8,"time":1,"data":{"title":7}}\n', b"\0\0\0\n", b'{"type":"x"}\n', b"\n"]
    write(tmp_path, lines=[*lines[:3], b"broken\n", *lines[3:], *bad])
    row = listed(tmp_path)["s"]
    assert (row.title, row.event_count, row.updated_at) == ("the title", 9, 1)
    write(tmp_path, lines=bad[1:])
    assert (listed(tmp_path)["s"].event_count, listed(tmp_path)["s"].updated_at) == (0, 7)


def test_a_title_line_that_cannot_be_read_changes_nothing(tmp_path):
    broken = b'{"type":"session/title","seq":1,"time":1,"data":{"ti\n'
    write(tmp_path, lines=[*lines_of([TITLE]), broken, *lines_of(text_turn(1), first=2)])
    assert listed(tmp_path)["s"].title == "the title"


def test_lines_of_any_length_are_found(tmp_path):
    long = ("session/title", {"title": "t" * 3_000_000, "by": "user"})
    pairs = [TITLE, *text_turn(1, "p" * 2_500_000), long, *text_turn(2, "q" * 200_000)]
    write(tmp_path, lines=lines_of(pairs))
    row = listed(tmp_path)["s"]
    assert (row.title, row.event_count, row.updated_at) == ("t" * 3_000_000, 16, 1015)


@pytest.mark.parametrize("end", range(1 << 20, (1 << 20) + 40, 3))
def test_a_title_is_found_across_the_blocks_that_are_read(tmp_path, end):
    start = len(encode_header(SessionHeader("s", 7, cwd="/there"))) + len(lines_of([turn_padding("")])[0])
    write(tmp_path, lines=lines_of([turn_padding("x" * (end - start)), TITLE, *text_turn(1)]))
    assert (listed(tmp_path)["s"].title, listed(tmp_path)["s"].event_count) == ("the title", 9)


def test_a_header_of_an_impossible_time_is_listed(tmp_path):
    write(tmp_path, header=b'{"type":"session","version":1,"id":"s","createdAt":%d,"cwd":"/there"}\n' % 10**30)
    assert listed(tmp_path)["s"].created_at == 2**53


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100, b"SQLite format 3\0" + b"\0" * 4000])
def test_a_corrupt_index_is_made_anew(tmp_path, content):
    write(tmp_path, lines=lines_of(text_turn(1)))
    (tmp_path / NAME).write_bytes(content)
    for _ in range(2):
        assert listed(tmp_path)["s"].event_count == 7
    assert list(kept(tmp_path).values()) == [7]


def test_an_index_with_a_damaged_page_is_made_anew(tmp_path):
    for number in range(60):
        write(tmp_path, f"s{number:0100}", lines=lines_of(text_turn(1)))
    assert len(listed(tmp_path)) == 60
    content = (tmp_path / NAME).read_bytes()
    assert len(content) > 8192
    (tmp_path / NAME).write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    for _ in range(2):
        assert len(listed(tmp_path)) == 60
    assert len(kept(tmp_path)) == 60


@pytest.mark.parametrize(
    "statement", ["PRAGMA user_version = 99", "DROP TABLE logs", "UPDATE logs SET id = CAST(x'ff' AS TEXT)"]
)
def test_an_index_of_another_version_or_form_is_made_anew(tmp_path, statement):
    write(tmp_path, lines=lines_of(text_turn(1)))
    assert listed(tmp_path).keys() == {"s"}
    with closing(sqlite3.connect(tmp_path / NAME)) as connection:
        connection.execute(statement)
        connection.commit()
    for _ in range(2):
        assert listed(tmp_path)["s"].event_count == 7
    with closing(sqlite3.connect(tmp_path / NAME)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT id FROM logs").fetchall() == [("s",)]


def test_an_index_that_somebody_has_locked_costs_time_alone(tmp_path):
    write(tmp_path, lines=lines_of(text_turn(1)))
    assert listed(tmp_path).keys() == {"s"}
    with closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("UPDATE logs SET title = 'x'")
        write(tmp_path, "t", lines=lines_of(text_turn(1)))
        assert listed(tmp_path, busy_seconds=0.01).keys() == {"s", "t"}


def test_an_index_that_cannot_be_made_costs_time_alone(tmp_path):
    write(tmp_path, lines=lines_of(text_turn(1)))
    (tmp_path / NAME).mkdir()
    for _ in range(2):
        assert listed(tmp_path)["s"].event_count == 7


def test_many_may_list_at_once(tmp_path):
    for number in range(20):
        write(tmp_path, f"s{number}", lines=lines_of(text_turn(1)))
    found, start = [], threading.Barrier(6)

    def look():
        start.wait()
        found.append(len(listed(tmp_path)))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [20] * 6
    assert len(kept(tmp_path)) == 20


def test_a_log_that_vanishes_or_is_another_users_is_left_out(tmp_path, monkeypatch):
    vanished, foreign = write(tmp_path, "a"), write(tmp_path, "b")
    write(tmp_path, "c")
    opened = os.open

    def failing(path, *rest, **more):
        if path == vanished:
            raise FileNotFoundError(errno.ENOENT, "gone", str(path))
        if path == foreign:
            raise PermissionError(errno.EACCES, "not yours", str(path))
        return opened(path, *rest, **more)

    monkeypatch.setattr(os, "open", failing)
    assert listed(tmp_path).keys() == {"c"}


async def test_a_disk_that_fails_never_reads_as_no_sessions(tmp_path):
    write(tmp_path)
    root = tmp_path / "root"
    root.write_text("a file in the way")
    with pytest.raises(SessionStoreError, match="cannot be listed: Not a directory"):
        await JsonlSessionStore(root, VirtualRuntime()).list()


def test_an_outline_without_an_id_is_no_row():
    assert Outline(1, 2, 3).summary() is None
