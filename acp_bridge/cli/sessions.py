"""`dsh-acp-agent sessions`: from the words of the command line to an exit code.

May not know: concrete stores and tools (the composition root hands them in). Invariants: it needs no key and no usable
model configuration, only to know where the sessions lie; whatever goes wrong is one line that names the fix.
Exit codes: 0 done, 1 could not, 2 not understood.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

import anyio

from acp_bridge.cli.arguments import (
    PROGRAM,
    Command,
    DeleteSessions,
    ExportSession,
    ImportSession,
    ListSessions,
    RepairSession,
    ShowSession,
    parse_arguments,
)
from acp_bridge.cli.exporting import export_session
from acp_bridge.cli.importing import import_session
from acp_bridge.cli.listing import list_sessions
from acp_bridge.cli.parts import Parts, Streams
from acp_bridge.cli.selection import CommandError
from acp_bridge.cli.showing import show_session
from acp_bridge.cli.upkeep import chosen, confirmed, delete_sessions, repair_session
from acp_bridge.config_file import Flags, RawConfig, read_config
from acp_bridge.credential_file import stored_keys
from acp_bridge.known_secrets import known_secrets
from acp_bridge.settings import SettingsError, load_settings
from acp_bridge.translate.v1.cards import FindTool
from agent_loop.runtime import Runtime
from agent_loop.session.store import SessionDamagedError, SessionNotFoundError, SessionStore, SessionStoreError

_ROOT_VARIABLE = "DSH_SNAPSHOT_SESSIONS_ROOT"


def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    streams: Streams,
    *,
    open_store: Callable[[Path], SessionStore],
    find_tool: FindTool,
    runtime: Runtime,
) -> int:
    """Carry out `argv` (what follows the word `sessions`); returns the exit code. Raises `SystemExit` for usage."""
    invocation = parse_arguments(argv)
    try:
        raw = read_config(Flags(invocation.config), environment)
        parts = Parts(
            store=open_store(sessions_root(raw, environment)),
            find_tool=find_tool,
            secrets=known_secrets(raw.table, environment, stored_keys(environment)),
            runtime=runtime,
            environment=environment,
            streams=streams,
        )
        _carry_out(parts, invocation.command)
        streams.out.flush()
    except BrokenPipeError:
        # the reader has seen enough; what is still buffered goes nowhere, or the interpreter would complain at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), streams.out.fileno())
        return 0
    except (CommandError, SettingsError, SessionStoreError, OSError) as error:
        streams.say(f"{PROGRAM}: {_explained(error)}")
        return 1
    return 0


def sessions_root(raw: RawConfig, environment: Mapping[str, str]) -> Path:
    """Where the agent keeps its sessions. Raises `SettingsError` when the file that may say so cannot be read.

    Whatever else is wrong with the configuration does not matter here.
    """
    named = {_ROOT_VARIABLE: environment[_ROOT_VARIABLE]} if environment.get(_ROOT_VARIABLE) else {}
    if named:
        raw = RawConfig(raw.path, {})
    table = {name: raw.table[name] for name in ("sessions",) if name in raw.table}
    return load_settings(RawConfig(raw.path, table, raw.problem), Flags(), named).sessions_root


def _carry_out(parts: Parts, command: Command) -> None:
    match command:
        case ListSessions():
            anyio.run(list_sessions, parts, command)
        case ShowSession():
            anyio.run(show_session, parts, command)
        case ExportSession():
            anyio.run(export_session, parts, command)
        case ImportSession():
            anyio.run(import_session, parts, command)
        case RepairSession():
            anyio.run(repair_session, parts, command.id)
        case DeleteSessions():
            sessions = anyio.run(chosen, parts, command)
            # asked between two runs: a Ctrl-C would not end a question within one
            if not (command.yes or confirmed(parts, sessions)):
                raise CommandError("nothing was deleted")
            anyio.run(delete_sessions, parts, sessions)
        case _:
            assert_never(command)


def _explained(error: Exception) -> str:
    match error:
        case SessionDamagedError():
            return f"{error.message}; `{PROGRAM} repair {error.session_id}` keeps what can be kept"
        case SessionNotFoundError():
            return f"{error.message}; `{PROGRAM} list` shows what there is"
        case OSError():
            return f"{error.strerror or error}: {error.filename}" if error.filename else str(error.strerror or error)
        case _:
            return str(error)
