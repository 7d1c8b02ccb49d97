"""Who may open a session before any setting was read."""

import pytest

from acp_bridge.config_file import Flags, RawConfig
from acp_bridge.first_session import plain_start_mode
from acp_bridge.settings import load_settings

NOTHING = RawConfig("/config.toml", {})


@pytest.mark.parametrize(
    ("flags", "environment", "mode"),
    [
        (Flags(), {}, "ask"),
        (Flags(), {"DSH_PERMISSION_MODE": "full"}, "full"),
        (Flags(), {"DSH_PERMISSION_MODE": ""}, "ask"),
        (Flags(permission_mode="full"), {"DSH_PERMISSION_MODE": "ask"}, "full"),
        (Flags(model="other/model"), {"DEEPSEEK_BASE_URL": "http://127.0.0.1:1/v1", "DSH_MODEL": "x"}, "ask"),
        (Flags(), {"DEEPSEEK_BASE_URL": ""}, "ask"),
    ],
)
def test_without_a_configuration_the_mode_is_the_one_that_the_settings_would_give(flags, environment, mode):
    assert plain_start_mode(NOTHING, flags, environment) == mode
    assert load_settings(NOTHING, flags, environment).permission_mode == mode


@pytest.mark.parametrize(
    ("raw", "environment"),
    [
        (RawConfig("/config.toml", {"model": "x"}), {}),
        (RawConfig("/config.toml", {}, "cannot be read"), {}),
        (NOTHING, {"DSH_SNAPSHOT": "replay"}),
        (NOTHING, {"DSH_SNAPSHOT_SESSIONS_ROOT": "/sessions"}),
        (NOTHING, {"DEEPSEEK_BASE_URL": "ftp://x"}),
        (NOTHING, {"DSH_PERMISSION_MODE": "odd"}),
    ],
)
def test_where_a_setting_has_to_be_read_the_light_path_opens_nothing(raw, environment):
    assert plain_start_mode(raw, Flags(), environment) is None
