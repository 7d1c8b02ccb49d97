"""Where a log lies (contract session-log.md §9)."""

import hashlib
import os
import stat
from pathlib import Path

import pytest

from agent_loop.session.layout import bucket_of, encode_id, find_log, log_path, make_directories


@pytest.mark.parametrize(
    ("session_id", "name"),
    [
        ("abc-DEF_1.2", "abc-DEF_1.2"),
        ("a/b", "a~002Fb"),
        ("~", "~007E"),
        (".", "~002E"),
        ("..", "~002E~002E"),
        ("...", "..."),
        ("é", "~00E9"),
        ("😀", "~D83D~DE00"),
        ("\ud800", "~D800"),
        ("a\0b\n", "a~0000b~000A"),
        ("~002E", "~007E002E"),
    ],
)
def test_ids_become_names_that_stay_in_their_folder(session_id, name):
    assert encode_id(session_id) == name


def test_an_empty_id_has_no_name():
    with pytest.raises(ValueError, match="empty"):
        encode_id("")


def test_buckets_are_named_by_the_working_directory():
    assert bucket_of("/srv/app") == "cwd-" + hashlib.sha256(b"/srv/app").hexdigest()[:12]
    assert bucket_of(None) == "_no-cwd"
    assert log_path(Path("/r"), "a/b", None) == Path("/r/_no-cwd/a~002Fb.jsonl")


def test_a_log_is_found_in_its_bucket_first_and_in_any_other_then(tmp_path):
    here, there = log_path(tmp_path, "s", "/here"), log_path(tmp_path, "s", "/there")
    (tmp_path / "a-file").touch()
    make_directories(tmp_path / "0-empty")
    make_directories(there.parent)
    there.touch()
    assert find_log(tmp_path, "s", "/here") == there
    make_directories(here.parent)
    here.touch()
    assert find_log(tmp_path, "s", "/here") == here
    assert find_log(tmp_path, "other", "/here") is None


def test_a_missing_root_holds_no_logs(tmp_path):
    assert find_log(tmp_path / "none", "s", None) is None


def test_an_id_too_long_for_a_file_was_never_stored(tmp_path):
    assert find_log(tmp_path, "s" * 5000, None) is None


def test_a_root_that_cannot_be_read_is_no_empty_root(tmp_path):
    (tmp_path / "root").touch()
    with pytest.raises(NotADirectoryError):
        find_log(tmp_path / "root", "s", None)


def test_every_directory_that_is_made_is_private(tmp_path):
    old = os.umask(0)
    try:
        make_directories(tmp_path / "a" / "b" / "c")
        make_directories(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(old)
    for made in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o700


def test_a_file_in_the_way_of_a_directory_is_an_error(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match="a"):
        make_directories(tmp_path / "a" / "b")
