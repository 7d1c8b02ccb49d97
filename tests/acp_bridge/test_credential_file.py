"""The private file in which keys are kept."""

import json
import os
import stat
from pathlib import Path

import pytest

from acp_bridge.credential_file import CredentialFile, CredentialStoreError, Entry, credentials_path, stored_keys


@pytest.fixture
def file(tmp_path):
    return CredentialFile(str(tmp_path / "config" / "credentials.json"))


def put(file, text):
    Path(file.path).parent.mkdir(exist_ok=True)
    Path(file.path).write_text(text)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_what_is_written_is_read_again_and_is_private(file):
    assert file.read() == {}
    file.change(lambda entries: {**entries, "one": Entry(key="k-1"), "two": Entry(ticket="t")})
    file.change(lambda entries: {**entries, "one": Entry(key="k-2")})
    assert file.read() == {"one": Entry(key="k-2"), "two": Entry(ticket="t")}
    assert (mode(file.path), mode(Path(file.path).parent)) == (0o600, 0o700)
    assert os.listdir(Path(file.path).parent) == ["credentials.json"]


def test_a_folder_that_others_could_read_is_closed(file):
    Path(file.path).parent.mkdir(mode=0o755)
    file.change(lambda entries: entries)
    assert mode(Path(file.path).parent) == 0o700


@pytest.mark.parametrize(
    "text", ["{half", "[]", "{}", '{"version": 2, "providers": {}}', '{"version": 1, "providers": []}']
)
def test_a_damaged_file_is_named_and_left_as_it_is(file, text):
    put(file, text)
    for attempt in (file.read, lambda: file.change(lambda entries: entries)):
        with pytest.raises(CredentialStoreError, match="is damaged; remove it and log in again"):
            attempt()
    assert Path(file.path).read_text() == text


def test_rows_that_say_nothing_are_no_entries(file):
    rows = {"a": {"key": ""}, "b": {"key": 1}, "c": [], "d": {"keyring": 2}, "e": {"key": "k"}, "f": {"keyring": "t"}}
    put(file, json.dumps({"version": 1, "providers": rows}))
    assert file.read() == {"e": Entry(key="k"), "f": Entry(ticket="t")}


def test_a_file_that_cannot_be_opened_or_written_says_why(file):
    Path(file.path).mkdir(parents=True)
    with pytest.raises(CredentialStoreError, match="Is a directory"):
        file.read()
    os.rmdir(file.path)
    os.rmdir(Path(file.path).parent)
    Path(file.path).parent.touch()
    with pytest.raises(CredentialStoreError, match="the stored keys cannot be written"):
        file.change(lambda entries: entries)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(file):
    class Meddler(CredentialFile):
        def read(self):
            # what stands in the place of the file by the time it is replaced
            os.mkdir(self.path)
            return {}

    with pytest.raises(CredentialStoreError, match="cannot be written"):
        Meddler(file.path).change(lambda entries: entries)
    assert os.listdir(Path(file.path).parent) == ["credentials.json"]


def test_no_key_shows_in_a_repr():
    assert "planted" not in repr(Entry(key="planted"))


def test_a_start_reads_the_keys_of_the_users_own_file_and_a_replay_none(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    file = CredentialFile(credentials_path())
    assert str(tmp_path) in file.path
    file.change(lambda _: {"one": Entry(key="k-1"), "two": Entry(ticket="t")})
    assert stored_keys({}) == {"one": "k-1"}
    assert stored_keys({"DSH_SNAPSHOT": "replay"}) == {}
    put(file, "damaged")
    assert stored_keys({}) == {}
