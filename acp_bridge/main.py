"""The composition root: argv, environment and config become concrete parts, the parts are wired, the client is served.

The only module that names concrete classes: one reads it and knows everything that runs. Invariant: `initialize` is
answered before anything heavy is imported, which is why `run` imports where it uses.
"""

import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from acp_bridge.command_line import parse_flags, refuse_platform
from acp_bridge.config_file import (
    Flags,
    RawConfig,
    chosen_key_variable,
    configured_keys,
    fork_wanted,
    key_variables,
    read_config,
)
from acp_bridge.endings import exit_on_signal, remember_signals
from acp_bridge.first_session import plain_start_mode
from acp_bridge.handshake import Greeting, greet
from acp_bridge.rpc.stdio import Stdio, claim
from bash_exec.environment import close_memory, secret_names, wipe_environment

if TYPE_CHECKING:
    from acp_bridge.logs import Log
    from acp_bridge.settings import Settings
    from agent_loop.abort import AbortSignal
    from agent_loop.agent import Agent
    from agent_loop.llm.openai_compat.models import ModelProfile, ProviderProfile
    from agent_loop.tools.bash import BashTool
    from agent_loop.tools.seam import Tool, ToolCall
    from bash_exec.seam import BashExecutor
    from bash_exec.secrets import SecretRegistry

REPLAY_FAILED = 3
"""Exit code at EOF when a replay met a call that was not recorded (snapshots.md §5)."""
REPLAY_UNUSABLE = 2
"""Exit code when there is nothing to replay from."""
INTERRUPTED = 130
"""Exit code of a command that a person stopped with Ctrl-C."""
SHUTDOWN_SECONDS = 4.5


class Start(NamedTuple):
    """What the light path has found out: the heavy path starts from here."""

    settings: "Settings"
    problem: str | None
    environment: dict[str, str]
    key_variables: list[str]
    stdio: Stdio
    greeting: Greeting
    parent: int
    log: "Log"
    secrets: "SecretRegistry"
    fork: bool
    signals: list[int]


def main() -> NoReturn:
    """The console script: serve one ACP client on stdin/stdout until it closes. Exits 0, or 3 after a failed replay."""
    refuse_platform(sys.platform)
    if sys.argv[1:2] == ["sessions"]:
        sys.exit(manage_sessions(sys.argv[2:]))
    if sys.argv[1:2] == ["bench"]:
        sys.exit(measure(sys.argv[2:]))
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
    key_variable = chosen_key_variable(raw.table, flags, environment)
    greeting = greet(
        *stdio,
        key_variable,
        fork=fork_wanted(raw.table),
        start_mode=plain_start_mode(raw, flags, environment),
        parent_alive=lambda: os.getppid() == parent,
    )
    sys.exit(run(flags, raw, environment, stdio, greeting, parent, remember_signals()))


def manage_sessions(argv: list[str]) -> int:
    """`dsh-acp-agent sessions …`: what people do with stored sessions. Returns the exit code."""
    try:
        from acp_bridge.cli.parts import Streams
        from acp_bridge.cli.sessions import run
        from agent_loop.runtime import SystemRuntime
        from agent_loop.session.jsonl import JsonlSessionStore

        runtime = SystemRuntime()
        return run(
            argv,
            os.environ,
            Streams.standard(),
            open_store=lambda root: JsonlSessionStore(root, runtime),
            find_tool=lambda name: _shown_tools().get(name),
            runtime=runtime,
        )
    except KeyboardInterrupt:
        return INTERRUPTED


def measure(argv: list[str]) -> int:
    """`dsh-acp-agent bench …`: how fast is an agent? Returns the exit code."""
    from acp_bridge.testing.bench import main as bench

    return bench(argv)


@cache
def _shown_tools() -> "dict[str, Tool]":
    """The tools as far as their cards go: without an executor, none of these can run anything."""
    executor = cast("BashExecutor", None)
    return {tool.name: tool for tool in _tools(executor, lambda _session, _text: None)}


def _tools(executor: "BashExecutor", notify: Callable[[str, str], None]) -> "tuple[BashTool, *tuple[Tool, ...]]":
    """Every tool that a session has; `notify(session_id, text)` tells the model of one something."""
    from agent_loop.tools.bash import BashKillTool, BashOutputTool, BashTool

    return BashTool(executor, notify=notify), BashOutputTool(executor), BashKillTool(executor)


def run(
    flags: Flags,
    raw: RawConfig,
    environment: dict[str, str],
    stdio: Stdio,
    greeting: Greeting,
    parent: int,
    signals: list[int],
) -> int:
    """Import the heavy half, make the settings, serve. Returns the exit code."""
    import anyio
    import platformdirs

    from acp_bridge.config_file import APP
    from acp_bridge.known_secrets import known_secrets
    from acp_bridge.logs import Log
    from acp_bridge.settings import SettingsError, load_settings

    secrets = known_secrets(raw.table, environment)
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
        stdio,
        greeting,
        parent,
        log,
        secrets,
        fork=fork_wanted(raw.table),
        signals=signals,
    )
    return anyio.run(_serve, start) or 0


async def _serve(start: "Start") -> int | None:  # noqa: C901 - the closures are the wires between the parts
    import asyncio

    import anyio
    import platformdirs

    from acp_bridge.bridge import Bridge, Parts
    from acp_bridge.config_file import APP
    from acp_bridge.credentials import Credential
    from acp_bridge.endings import stop_on_parent_death, stop_on_signal
    from acp_bridge.methods.v1.connection import Connection
    from acp_bridge.methods.v1.sessions import adopt
    from acp_bridge.methods.v1.table import V1Dispatcher
    from acp_bridge.permission.policy import EditorPolicy
    from acp_bridge.rpc.peer import Peer
    from agent_loop.commands.help import HelpCommand
    from agent_loop.commands.registry import CommandRegistry
    from agent_loop.commands.status import StatusCommand
    from agent_loop.commands.title import TitleCommand
    from agent_loop.errors import HarnessError
    from agent_loop.hooks import Hooks
    from agent_loop.inbox import InboxMessage
    from agent_loop.llm.openai_compat.adapter import OpenAICompatAdapter
    from agent_loop.llm.service import LlmService
    from agent_loop.prompt import default_sections
    from agent_loop.registry import AgentRegistry
    from agent_loop.runtime import SystemRuntime, VirtualRuntime
    from agent_loop.session.jsonl import JsonlSessionStore
    from agent_loop.session.live import LiveSessions
    from agent_loop.step import AgentOptions
    from agent_loop.titles import install_titles
    from agent_loop.tools.registry import ToolRegistry
    from bash_exec.environment import scrub_environment
    from bash_exec.local import LocalBashExecutor

    settings, log = start.settings, start.log
    clock_ms = settings.snapshot.clock if settings.snapshot else None
    real = SystemRuntime()
    runtime = real if clock_ms is None else VirtualRuntime(clock_ms, new_id=real.new_id)
    hooks = Hooks(lambda name, error: log.error("listener failed", hook=name, exc_info=error))

    def turn_failed(agent: "Agent", error: Exception) -> None:
        # what has a code is an outcome; everything else is a bug, and its place is wanted
        bug = None if isinstance(error, HarnessError) else error
        log.warning("turn failed", session=agent.id, code=getattr(error, "code", None), error=str(error), exc_info=bug)

    hooks.on("agent/error", turn_failed)
    provider, model = _provider(settings)
    replaying = settings.snapshot is not None and settings.snapshot.mode == "replay"
    keys = {name: row.key.get_secret_value() for name, row in settings.config.providers.items() if row.key}
    credential = Credential(provider.key_variable, keys.get(provider.name), start.environment, required=not replaying)
    llm = LlmService(hooks, runtime)
    adapter = OpenAICompatAdapter(provider, credential=credential.key, runtime=runtime)
    llm.register_adapter([row.id for row in provider.models], adapter)
    replay = None
    if settings.snapshot and replaying:
        from agent_loop.llm.replay import install_replay

        try:
            replay = install_replay(
                hooks,
                fixture=settings.snapshot.file,
                override=settings.snapshot.override,
                report=settings.snapshot.report,
                spill_root=str(settings.spill_root),
            )
        except HarnessError as error:
            log.error("replay", problem=error.message)  # noqa: TRY400 - the sentence says it all
            return REPLAY_UNUSABLE
        if replay.warning:
            log.warning(replay.warning)
    sessions = LiveSessions(JsonlSessionStore(settings.sessions_root, runtime), hooks, runtime, secrets=start.secrets)
    peer = Peer(start.stdio, before_write=sessions.write_pending, log=log)
    tools = ToolRegistry(hooks)
    commands = CommandRegistry(hooks)
    commands.register(HelpCommand(commands))
    commands.register(StatusCommand())
    commands.register(TitleCommand())
    install_titles(hooks)

    async def ask(
        session_id: str, call: "ToolCall", choices: Iterable[dict[str, str]], withdraw: "AbortSignal"
    ) -> dict[str, Any] | None:
        return await bridge.ask(session_id, call, choices, withdraw)

    def prompt_owns(session_id: str) -> bool:
        return bridge.prompt_owns_turn(session_id)

    policy = EditorPolicy(default_mode=settings.permission_mode, send=ask, prompt_owns=prompt_owns)

    def options(cwd: str) -> AgentOptions:
        return AgentOptions(
            provider=provider.name,
            model=model.id,
            system_prompt=default_sections(cwd),
            reasoning=model.reasoning,
            merge_users=model.merge_users,
            spill_root=str(settings.spill_root),
        )

    async with anyio.create_task_group() as tasks:
        registry = AgentRegistry(
            task_group=tasks, sessions=sessions, llm=llm, tools=tools, policy=policy, hooks=hooks, runtime=runtime
        )

        def notify_session(session_id: str, text: str) -> None:
            if agent := registry.get(session_id):
                source = {"kind": "plugin", "plugin": "tool-bash"}
                agent.inject(InboxMessage(runtime.new_id(), [{"type": "text", "text": text}], source))

        shown = scrub_environment(
            start.environment,
            key_sources=start.key_variables,
            allow=settings.config.env.allow,
            keys=keys.values(),
        )
        executor: BashExecutor
        if settings.config.executor == "sandbox":
            from bash_exec.sandbox import Reach, SandboxBashExecutor

            reach = settings.config.sandbox
            executor = SandboxBashExecutor(
                task_group=tasks,
                environment=shown,
                spill_root=settings.spill_root,
                secrets=start.secrets,
                roots=lambda session_id: [agent.cwd for agent in registry.list() if agent.id == session_id],
                reach=Reach(reach.allow_read, reach.allow_write, reach.network),
                hidden=[str(settings.sessions_root), platformdirs.user_config_dir(APP)],
            )
        else:
            executor = LocalBashExecutor(
                task_group=tasks, environment=shown, spill_root=settings.spill_root, secrets=start.secrets
            )
        bash, *others = _tools(executor, notify_session)
        bash.register_completion()
        for tool in (bash, *others):
            tools.register(tool)
        parts = Parts(
            registry=registry,
            tools=tools,
            commands=commands,
            executor=executor,
            policy=policy,
            hooks=hooks,
            runtime=runtime,
            options=options,
            window=lambda model_id: row.context_window if (row := provider.model(model_id)) else None,
            secrets=start.secrets,
        )
        bridge = Bridge(parts, peer, asyncio.get_running_loop().call_later)
        connection = Connection(bridge, credential, start.problem, fork=start.fork)
        if isinstance(runtime, VirtualRuntime):
            connection.advance = runtime.advance
        if start.greeting.initialize_params is not None:
            connection.accept(start.greeting.initialize_params)
        if start.greeting.opened is not None:
            adopt(connection, start.greeting.opened)
            # the client has its session, so nobody waits until a person has written a prompt
            adapter.prepare()
        tasks.start_soon(stop_on_signal, peer.stop, start.signals)
        tasks.start_soon(stop_on_parent_death, start.parent, peer.stop)

        async def end() -> None:
            with anyio.move_on_after(SHUTDOWN_SECONDS, shield=True):
                await bridge.shutdown()
                await executor.dispose()

        try:
            await peer.serve(V1Dispatcher(connection), preread=start.greeting.preread, on_eof=end)
        finally:
            with anyio.move_on_after(1, shield=True):
                await llm.aclose()
            tasks.cancel_scope.cancel()
        # inside: Python 3.11 stops tracing a frame that a cancelled task group has left
        return REPLAY_FAILED if replay and replay.failed else None


def _provider(settings: "Settings") -> "tuple[ProviderProfile, ModelProfile]":
    """The chosen endpoint and model; a model that the endpoint does not list is taken as it is."""
    from dataclasses import replace

    from agent_loop.llm.openai_compat.models import DEEPSEEK, ModelProfile, ProviderProfile

    row = settings.config.providers.get(settings.provider)
    listed = tuple(
        ModelProfile(
            entry.id,
            context_window=entry.context,
            max_output=entry.max_output,
            reasoning=entry.reasoning,
            merge_users=entry.merge_users,
        )
        for entry in (row.models if row else ())
    )
    if settings.provider == DEEPSEEK.name:
        provider = replace(
            DEEPSEEK, base_url=settings.deepseek_url or DEEPSEEK.base_url, models=listed or DEEPSEEK.models
        )
    else:
        provider = ProviderProfile(settings.provider, str(row and row.base_url), row and row.key_variable, listed)
    model = provider.model(settings.model) if settings.model else provider.models[0]
    if model is None:
        model = replace(provider.models[0], id=settings.model or "", context_window=None, max_output=None)
        provider = replace(provider, models=(*provider.models, model))
    return provider, model
