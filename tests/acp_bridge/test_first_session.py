"""Who may open a session before any setting was read."""

import pytest

from acp_bridge.composition.models import offer_of, providers_of
from acp_bridge.config_file import Flags, RawConfig
from acp_bridge.first_session import open_plainly, plain_offer
from acp_bridge.settings import load_settings
from acp_bridge.translate.v1.options import config_options

NOTHING = RawConfig("/config.toml", {})


@pytest.mark.parametrize(
    ("flags", "environment", "mode"),
    [
        (Flags(), {}, "ask"),
        (Flags(), {"DSH_PERMISSION_MODE": "full"}, "full"),
        (Flags(), {"DSH_PERMISSION_MODE": ""}, "ask"),
        (Flags(permission_mode="full"), {"DSH_PERMISSION_MODE": "ask"}, "full"),
        (Flags(model="other/model"), {"DEEPSEEK_BASE_URL": "http://127.0.0.1:1/v1", "DSH_MODEL": "x"}, "ask"),
        (Flags(), {"DSH_MODEL": "deepseek-v4-pro", "DEEPSEEK_API_KEY": "k"}, "ask"),
        (Flags(), {"DSH_MODEL": "deepseek/deepseek-v4-pro"}, "ask"),
        (Flags(), {"DSH_MODEL": "deepseek"}, "ask"),
        (Flags(), {"DEEPSEEK_BASE_URL": ""}, "ask"),
    ],
)
def test_without_a_configuration_the_offer_is_the_one_that_the_settings_would_give(flags, environment, mode):
    plain = plain_offer(NOTHING, flags, environment)
    assert plain.default.mode == mode
    settings = load_settings(NOTHING, flags, environment)
    made = offer_of(settings, providers_of(settings, environment))
    assert plain.default == made.default
    assert config_options(plain, plain.default) == config_options(made, made.default)


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
    assert plain_offer(raw, Flags(), environment) is None


def test_a_project_with_a_configuration_of_its_own_is_left_to_the_ordinary_path(tmp_path):
    offer = plain_offer(NOTHING, Flags(), {})
    (tmp_path / ".git").mkdir()
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert open_plainly({"cwd": str(below)}, offer) is not None
    (tmp_path / ".dsh-acp-agent.toml").touch()
    assert open_plainly({"cwd": str(below)}, offer) is None
