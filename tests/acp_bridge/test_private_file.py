"""Files that only their user can read."""

import os
import stat

import pytest

from acp_bridge.private_file import only_writer, replace_file


def test_a_write_that_ctrl_c_ends_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    def interrupted(_descriptor):
        raise KeyboardInterrupt

    path = tmp_path / "kept.json"
    replace_file(str(path), "old")
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_file(str(path), "new")
    assert os.listdir(tmp_path) == ["kept.json"]
    assert path.read_text() == "old"


def test_a_folder_that_others_could_read_is_closed_before_anything_is_written(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    with only_writer(str(folder)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
