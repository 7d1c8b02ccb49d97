"""Where the agent says at once that it cannot run."""

import pytest

from acp_bridge.command_line import refuse_platform


def test_windows_is_refused_with_the_way_out():
    with pytest.raises(SystemExit, match="WSL"):
        refuse_platform("win32")


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_other_systems_are_not(platform):
    refuse_platform(platform)
