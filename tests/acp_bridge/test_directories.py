"""The directories of this program are those that platformdirs names."""

import os
import sys

import platformdirs
import pytest

from acp_bridge.directories import APP, config_directory, log_directory, state_directory


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "/home/me"},
        {"HOME": "/"},
        {"HOME": "/home/me/", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s/"},
        {"HOME": "/home/me", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "relative"},
        {"HOME": "relative"},
        {},
        {"HOME": "/home/me", "ANDROID_ROOT": "/system"},
    ],
)
def test_they_are_those_that_platformdirs_names(monkeypatch, environment):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "ANDROID_ROOT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert config_directory() == platformdirs.user_config_dir(APP)
    assert state_directory() == platformdirs.user_state_dir(APP)
    assert log_directory() == platformdirs.user_log_dir(APP)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the library decides")
def test_on_linux_the_library_is_not_loaded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert {os.path.basename(config_directory()), os.path.basename(state_directory())} == {APP}
    assert os.path.basename(log_directory()) == "log"
