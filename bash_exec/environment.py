"""What a command may see of our environment, and how our own process keeps its keys (contract tools-and-bash.md §4).

May not know: which provider a key belongs to (names come in), processes, the loop. Loaded on the light start path:
nothing but `os` at import. Invariant: a name given as a key source never reaches a command, whatever else
allows it.
"""

import os
from collections.abc import Iterable, Mapping

SECRET_WORDS = ("KEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL")
KEPT = frozenset({"SSH_AUTH_SOCK"})
ADDITIONS: Mapping[str, str] = {
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_EDITOR": "false",
    "EDITOR": "false",
    "VISUAL": "false",
    "CI": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}
_SSH_BATCH = "ssh -oBatchMode=yes"
_PR_SET_DUMPABLE = 4
_SHORTEST_SECRET = 8  # a shorter value is a word that other variables may rightly contain


def is_secret_name(name: str) -> bool:
    """True when the name alone says that the value is a secret."""
    upper = name.upper()
    return upper not in KEPT and any(word in upper for word in SECRET_WORDS)


def secret_names(
    parent: Mapping[str, str], *, key_sources: Iterable[str] = (), allow: Iterable[str] = (), keys: Iterable[str] = ()
) -> list[str]:
    """The names of `parent` that no command may see and that `wipe_environment` should forget.

    Those that say so by themselves, less those of the `allow` list; `key_sources` (variable names of configured keys)
    always, and every variable whose value contains one of their values or one of `keys` (keys from elsewhere).
    """
    sources = set(key_sources)
    allowed = set(allow)
    values = [value for value in (*keys, *(parent.get(name, "") for name in sources)) if len(value) >= _SHORTEST_SECRET]
    return [
        name
        for name, value in parent.items()
        if name in sources
        or (name not in allowed and is_secret_name(name))
        or any(secret in value for secret in values)
    ]


def scrub_environment(
    parent: Mapping[str, str], *, key_sources: Iterable[str] = (), allow: Iterable[str] = (), keys: Iterable[str] = ()
) -> dict[str, str]:
    """The environment of commands: `parent` less its `secret_names`, with what keeps programs from prompting.

    Take the whole `parent` (as it was before `wipe_environment`), or copies of a wiped key stay unknown.
    """
    hidden = set(secret_names(parent, key_sources=key_sources, allow=allow, keys=keys))
    kept = {name: value for name, value in parent.items() if name not in hidden}
    return kept | additions(kept)


def additions(environment: Mapping[str, str]) -> dict[str, str]:
    """What keeps programs from prompting and from painting, for a command that otherwise runs with `environment`."""
    if environment.keys() & {"GIT_SSH", "GIT_SSH_COMMAND"}:
        return dict(ADDITIONS)
    return {**ADDITIONS, "GIT_SSH_COMMAND": _SSH_BATCH}


def wipe_environment(names: Iterable[str], *, stat_path: str = "/proc/self/stat") -> dict[str, str]:
    """Forget `names`: out of `os.environ`, and overwritten in the block that `/proc/<pid>/environ` shows.

    Returns what was captured. Where the kernel does not tell the block's place (no /proc), only `os.environ` forgets.
    Call it before anything else reads the environment: C libraries see an unset variable afterwards.
    """
    captured = {name: os.environ[name] for name in names if name in os.environ}
    if captured:
        _overwrite({os.fsencode(name) for name in captured}, stat_path)
    for name in captured:
        del os.environ[name]
    return captured


def close_memory() -> None:
    """From now on no other process of this user may read the memory of this one, or trace it (Linux; root still may).

    For a process that keeps keys. Its core is not dumped either; programs that it starts are not affected.
    """
    import contextlib  # noqa: PLC0415 - only a process that has a key pays for these
    import ctypes  # noqa: PLC0415 - only a process that has a key pays for these

    with contextlib.suppress(AttributeError):  # other systems have no prctl
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _overwrite(names: set[bytes], stat_path: str) -> None:
    try:
        with open(stat_path, "rb") as file:
            stat = file.read()
    except OSError:
        return
    import ctypes  # noqa: PLC0415 - only a start with a key in the environment pays for it

    # fields 50 and 51 (env_start, env_end); the name in field 2 may hold anything, so count from its last bracket
    fields = stat[stat.rindex(b")") + 2 :].split()
    start, end = int(fields[47]), int(fields[48])
    position = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if name in names:
            ctypes.memset(position + len(name) + len(equals), 0, len(value))
        position += len(entry) + 1
