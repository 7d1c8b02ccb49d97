"""Where the platform wants the files of this program.

May not know: what lies there. Invariant: the same answers as `platformdirs` gives; it is asked itself wherever more
than the rule of XDG decides, and not loaded where nothing else does: it takes half a MiB, and `initialize` would wait.
"""

import os
import sys

APP = "dsh-acp-agent"


def config_directory() -> str:
    """The user's configuration."""
    if directory := _by_xdg("XDG_CONFIG_HOME", "/.config"):
        return directory
    import platformdirs  # noqa: PLC0415 - see above

    return platformdirs.user_config_dir(APP)


def state_directory() -> str:
    """What is kept from one run to the next."""
    if directory := _by_xdg("XDG_STATE_HOME", "/.local/state"):
        return directory
    import platformdirs  # noqa: PLC0415 - see above

    return platformdirs.user_state_dir(APP)


def log_directory() -> str:
    """Logs of the program itself."""
    if directory := _by_xdg("XDG_STATE_HOME", "/.local/state"):
        return f"{directory}/log"
    import platformdirs  # noqa: PLC0415 - see above

    return platformdirs.user_log_dir(APP)


def _by_xdg(variable: str, below_home: str) -> str | None:
    """The directory of this program by the rule of XDG; None where that is not all that there is to say."""
    base, home = os.environ.get(variable, ""), os.environ.get("HOME", "")
    if sys.platform != "linux" or "ANDROID_ROOT" in os.environ or not home.startswith("/"):
        return None
    return os.path.join(base if base.startswith("/") else home.rstrip("/") + below_home, APP)
