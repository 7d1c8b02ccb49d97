"""The system keyring as another program: the real package with a backend of this test, and programs that misbehave."""

import os
import sys

import pytest

from acp_bridge.credential_store import KeyringFailure
from acp_bridge.keyring_program import KeyringProgram, keyring_here

BACKEND = """
import json, pathlib
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

class Backend(KeyringBackend):
    priority = 1
    file = pathlib.Path(__file__).with_name("kept.json")

    def _kept(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def get_password(self, service, username):
        return self._kept().get(f"{service}/{username}")

    def set_password(self, service, username, password):
        self.file.write_text(json.dumps({**self._kept(), f"{service}/{username}": password}))

    def delete_password(self, service, username):
        kept = self._kept()
        if kept.pop(f"{service}/{username}", None) is None:
            raise PasswordDeleteError("not found")
        self.file.write_text(json.dumps(kept))
"""


def program(folder, text="", **options):
    """A package `keyring` that is only this `text`; with none, the real one with the backend above."""
    if text:
        (folder / "keyring").mkdir()
        (folder / "keyring" / "__init__.py").touch()
        (folder / "keyring" / "__main__.py").write_text(f"import sys\n{text}\n")
    else:
        (folder / "kept_here.py").write_text(BACKEND)
    environment = {"PYTHONPATH": str(folder), "PYTHON_KEYRING_BACKEND": "kept_here.Backend", "HOME": str(folder)}
    return KeyringProgram(environment, **options)


async def test_the_real_package_keeps_and_gives_a_key(tmp_path):
    keyring = program(tmp_path)
    await keyring.save("mine", "k-1")
    assert '"dsh-acp-agent/mine": "k-1"' in (tmp_path / "kept.json").read_text()
    assert await keyring.find("mine") == "k-1"


@pytest.mark.long
async def test_the_real_package_forgets_a_key_and_has_nothing_against_doing_so_twice(tmp_path):
    keyring = program(tmp_path)
    await keyring.save("mine", "k-1")
    await keyring.forget("mine")
    assert (tmp_path / "kept.json").read_text() == "{}"
    await keyring.forget("mine")


async def test_the_key_is_given_through_a_pipe_and_nothing_of_the_working_directory_is_loaded(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "argparse.py").write_text("raise SystemExit('loaded from the working directory')")
    monkeypatch.chdir(tmp_path / "here")
    keyring = program(tmp_path, "import argparse\nprint(sys.argv[1:], sys.stdin.read(), file=sys.stderr)\nsys.exit(1)")
    with pytest.raises(KeyringFailure, match=r"\['set', 'dsh-acp-agent', 'mine'\] k-1"):
        await keyring.save("mine", "k-1")


async def test_a_failing_keyring_is_a_failure_with_its_last_words(tmp_path):
    text = "raise type('Locked', (Exception,), {'__module__': 'keyring.errors'})('locked. Unlock it first')"
    keyring = program(tmp_path, text)
    with pytest.raises(KeyringFailure) as failed:
        await keyring.find("mine")
    assert str(failed.value) == "Locked: locked"


async def test_a_key_that_is_gone_before_it_is_forgotten_is_no_failure(tmp_path):
    await program(tmp_path, "sys.exit(1 if sys.argv[1] == 'get' else 'not found')").forget("mine")


async def test_a_key_that_stays_is_a_failure(tmp_path):
    keyring = program(tmp_path, "print('still here') if sys.argv[1] == 'get' else sys.exit('no')")
    with pytest.raises(KeyringFailure, match="no"):
        await keyring.forget("mine")


async def test_an_interpreter_that_is_gone_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(KeyringFailure, match="python cannot be started: No such file"):
        await program(tmp_path).find("mine")


async def test_a_keyring_that_never_answers_is_given_up_and_ended(tmp_path):
    keyring = program(tmp_path, "import signal\nsignal.pause()", seconds=0.2)
    with pytest.raises(KeyringFailure, match="did not answer within"):
        await keyring.find("mine")


async def test_it_gets_no_secret_but_its_own(tmp_path):
    (tmp_path / "keyring").mkdir()
    (tmp_path / "keyring" / "__init__.py").touch()
    (tmp_path / "keyring" / "__main__.py").write_text("import os\nprint(sorted(os.environ))")
    environment = {"MY_TOKEN": "t", "LOCAL_PASS": "p", "PYTHON_KEYRING_BACKEND": "b", "PYTHONPATH": str(tmp_path)}
    keyring = keyring_here(environment, ["LOCAL_PASS"])
    names = await keyring.find("mine")
    assert "PYTHON_KEYRING_BACKEND" in names
    assert "MY_TOKEN" not in names
    assert "LOCAL_PASS" not in names


def test_without_the_package_there_is_no_keyring(monkeypatch, tmp_path):
    own = os.path.dirname(os.path.dirname(__import__("keyring").__file__))
    monkeypatch.delitem(sys.modules, "keyring")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != own])
    assert keyring_here({}, []) is None
