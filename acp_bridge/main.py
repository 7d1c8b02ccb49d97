"""The composition root: argv, environment and config become concrete parts, the parts are wired, the client is served.

What runs then is made in `composition`. Invariant: `initialize` is answered before anything heavy is imported, which
is why `run` imports where it uses.
"""

import os
import sys
from importlib import import_module
from typing import NoReturn

from acp_bridge.command_line import own_command, parse_flags, refuse_platform, sign_in_place, told_environment
from acp_bridge.config_file import (
    Flags,
    RawConfig,
    chosen_provider,
    configured_keys,
    fork_wanted,
    images_taken,
    key_variable,
    key_variables,
    keys_are_wanted,
    read_config,
)
from acp_bridge.endings import exit_on_signal, leave, remember_signals
from acp_bridge.first_session import plain_offer
from acp_bridge.handshake import Greeting, greet
from acp_bridge.methods.v1.initialize import SignIn
from acp_bridge.rpc.stdio import Stdio, claim
from bash_exec.environment import close_memory, secret_names, wipe_environment

INTERRUPTED = 130
"""Exit code of a command that a person stopped with Ctrl-C."""


def main() -> NoReturn:
    """The console script: serve one ACP client on stdin/stdout until it closes. Exits 0, or 3 after a failed replay."""
    refuse_platform(sys.platform)
    if sys.argv[1:2] == ["sessions"]:
        sys.exit(manage_sessions(sys.argv[2:]))
    if sys.argv[1:2] == ["config"]:
        sys.exit(show_settings(sys.argv[2:]))
    if sys.argv[1:2] == ["bench"]:
        sys.exit(measure(sys.argv[2:]))
    if sys.argv[1:2] == ["ui"]:
        sys.exit(show_page(sys.argv[2:]))
    if (place := sign_in_place(sys.argv)) is not None:
        sys.exit(manage_keys(sys.argv[1:place], sys.argv[place:]))
    flags = parse_flags(sys.argv[1:]) if sys.argv[1:] else Flags()
    if sys.stdin is not None and sys.stdin.isatty():
        print(  # noqa: T201 - stdout is not claimed yet, and stderr is where a person looks
            "dsh-acp-agent speaks the Agent Client Protocol on stdin/stdout; an editor starts it. "
            "See --help, or press Ctrl-D to leave.",
            file=sys.stderr,
        )
    stdio = claim()
    exit_on_signal()
    parent = os.getppid()
    raw = read_config(flags, os.environ)
    secret = secret_names(os.environ, key_sources=key_variables(raw.table), keys=configured_keys(raw.table).values())
    environment = {**os.environ, **wipe_environment(secret)}
    if secret or configured_keys(raw.table):
        close_memory()
    provider = chosen_provider(raw.table, flags, environment)
    variable = key_variable(raw.table, provider) if keys_are_wanted(environment) else None
    sign_in = SignIn(provider, variable, own_command(sys.argv), told_environment(environment))
    greeting = greet(
        *stdio,
        sign_in,
        fork=fork_wanted(raw.table),
        images=images_taken(raw.table),
        offer=plain_offer(raw, flags, environment),
        parent_alive=lambda: os.getppid() == parent,
    )
    leave(run(flags, raw, environment, stdio, greeting, parent, remember_signals(), sign_in))


def manage_sessions(argv: list[str]) -> int:
    """`dsh-acp-agent sessions …`: what people do with stored sessions. Returns the exit code."""
    try:
        from acp_bridge.cli.parts import Streams
        from acp_bridge.cli.sessions import run
        from acp_bridge.composition.toolset import shown_tools
        from agent_loop.runtime import SystemRuntime
        from agent_loop.session.jsonl import JsonlSessionStore

        runtime = SystemRuntime()
        return run(
            argv,
            os.environ,
            Streams.standard(),
            open_store=lambda root: JsonlSessionStore(root, runtime),
            find_tool=lambda name: shown_tools().get(name),
            runtime=runtime,
        )
    except KeyboardInterrupt:
        return INTERRUPTED


def show_page(argv: list[str]) -> int:
    """`dsh-acp-agent ui`: the sessions on a local page. Returns the exit code."""
    try:
        from acp_bridge.cli.parts import Streams
        from acp_bridge.composition.page import serve_page

        return serve_page(argv, os.environ, Streams.standard())
    except KeyboardInterrupt:
        return INTERRUPTED


def manage_keys(before: list[str], argv: list[str]) -> int:
    """`dsh-acp-agent … login` and `… logout`, behind the agent's own flags. Returns the exit code."""
    try:
        from acp_bridge.composition.signing_in import sign_in_or_out

        return sign_in_or_out(argv[0], parse_flags(before), argv[1:], os.environ)
    except KeyboardInterrupt:
        return INTERRUPTED


def show_settings(argv: list[str]) -> int:
    """`dsh-acp-agent config`: every setting and where it comes from. Returns the exit code."""
    from acp_bridge.cli.config import run as show
    from acp_bridge.cli.parts import Streams

    return show(argv, os.environ, Streams.standard())


def measure(argv: list[str]) -> int:
    """`dsh-acp-agent bench …`: how fast is an agent? Returns the exit code."""
    from acp_bridge.testing.bench import main as bench

    return bench(argv)


def run(
    flags: Flags,
    raw: RawConfig,
    environment: dict[str, str],
    stdio: Stdio,
    greeting: Greeting,
    parent: int,
    signals: list[int],
    sign_in: SignIn,
) -> int:
    """Import the heavy half, make the settings, serve. Returns the exit code."""
    # there are no plugins, and the search would read what every installed package says of itself; no child sees this
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    from acp_bridge.lean_imports import without_garbage_collection, without_package_metadata

    with without_package_metadata(), without_garbage_collection():
        import anyio
        import platformdirs

        from acp_bridge.composition.serving import serve
        from acp_bridge.composition.start import Start
        from acp_bridge.config_file import APP
        from acp_bridge.credential_file import stored_keys
        from acp_bridge.known_secrets import known_secrets
        from acp_bridge.logs import Log
        from acp_bridge.settings import SettingsError, load_settings

        if greeting.opened is not None:
            # the client has its session, so nobody waits until a person has written a prompt
            import_module("agent_loop.llm.openai_compat.http")

    stored = stored_keys(environment)
    if stored:
        wipe_environment(secret_names(os.environ, keys=stored.values()))
        close_memory()
    secrets = known_secrets(raw.table, environment, stored)
    level = environment.get("DSH_LOG_LEVEL", "INFO").upper()
    log = Log(platformdirs.user_log_path(APP), level, redact=secrets.redact)
    problem: str | None = None
    try:
        settings = load_settings(raw, flags, environment)
    except SettingsError as error:
        problem = str(error)
        log.warning("configuration", problem=problem)
        settings = load_settings(RawConfig(raw.path, {}), Flags(), {})
    start = Start(
        settings,
        problem,
        environment,
        key_variables(raw.table),
        stored,
        sign_in,
        stdio,
        greeting,
        parent,
        log,
        secrets,
        fork=fork_wanted(raw.table),
        images=images_taken(raw.table),
        signals=signals,
    )
    return anyio.run(serve, start) or 0
