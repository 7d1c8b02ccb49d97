"""Every part of a running agent, made and wired: one reads it and knows everything that runs.

May not know: argv, how the settings came about. Invariant: what is started here is ended here, in reverse order.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

import anyio

from acp_bridge.bridge import Bridge, Parts
from acp_bridge.composition.executors import make_executor
from acp_bridge.composition.exports import write_markdown
from acp_bridge.composition.keys import make_credentials
from acp_bridge.composition.looping import make_loops
from acp_bridge.composition.mcp import make_mcp
from acp_bridge.composition.models import offer_of, providers_of, register_adapters
from acp_bridge.composition.owning import offer_socket, socket_places
from acp_bridge.composition.project import session_config, session_offer
from acp_bridge.composition.start import Start
from acp_bridge.composition.toolset import make_tools
from acp_bridge.elicitation import EditorForms
from acp_bridge.endings import stop_on_parent_death, stop_on_signal
from acp_bridge.methods.v1.connection import Connection
from acp_bridge.methods.v1.prompt import run_line
from acp_bridge.methods.v1.sessions import adopt
from acp_bridge.methods.v1.table import V1Dispatcher
from acp_bridge.permission.ledger import Ledger
from acp_bridge.permission.policy import EditorPolicy
from acp_bridge.permission.rule_book import RuleBook, configured_rules
from acp_bridge.rpc.peer import Peer
from agent_loop.abort import AbortSignal
from agent_loop.agent import Agent
from agent_loop.commands.choose import choice_commands
from agent_loop.commands.compact import CompactCommand
from agent_loop.commands.export import ExportCommand
from agent_loop.commands.help import HelpCommand
from agent_loop.commands.permissions import PermissionsCommand
from agent_loop.commands.registry import CommandRegistry
from agent_loop.commands.status import StatusCommand
from agent_loop.commands.title import TitleCommand
from agent_loop.errors import HarnessError
from agent_loop.hooks import Hooks
from agent_loop.inbox import InboxMessage
from agent_loop.instructions import install_instructions
from agent_loop.llm.service import LlmService
from agent_loop.prompt import default_sections
from agent_loop.registry import AgentRegistry
from agent_loop.runtime import SystemRuntime, VirtualRuntime
from agent_loop.session.jsonl import JsonlSessionStore
from agent_loop.session.live import LiveSessions
from agent_loop.step import AgentOptions
from agent_loop.titles import install_titles
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import ToolCall
from bash_exec.environment import additions, scrub_environment

REPLAY_FAILED = 3
"""Exit code at EOF when a replay met a call that was not recorded (snapshots.md §5)."""
REPLAY_UNUSABLE = 2
"""Exit code when there is nothing to replay from."""
SHUTDOWN_SECONDS = 4.5


async def serve(start: Start) -> int | None:  # noqa: C901 - the closures are the wires between the parts
    """Serve the client until it closes. Returns the exit code, None for 0."""
    settings, log = start.settings, start.log
    clock_ms = settings.snapshot.clock if settings.snapshot else None
    real = SystemRuntime()
    runtime = real if clock_ms is None else VirtualRuntime(clock_ms, new_id=real.new_id)
    hooks = Hooks(lambda name, error: log.error("listener failed", hook=name, exc_info=error))

    def turn_failed(agent: Agent, error: Exception) -> None:
        # what has a code is an outcome; everything else is a bug, and its place is wanted
        bug = None if isinstance(error, HarnessError) else error
        log.warning("turn failed", session=agent.id, code=getattr(error, "code", None), error=str(error), exc_info=bug)

    hooks.on("agent/error", turn_failed)
    profiles = {profile.name: profile for profile in providers_of(settings, start.environment)}
    base = offer_of(settings, profiles.values())
    replaying = settings.snapshot is not None and settings.snapshot.mode == "replay"
    credentials = make_credentials(start, replaying=replaying)
    llm = LlmService(hooks, runtime)
    adapters = register_adapters(
        profiles.values(), llm=llm, runtime=runtime, credential=lambda name: partial(credentials.key, name)
    )
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
    commands.register(CompactCommand())
    install_titles(hooks)
    install_instructions(hooks)

    async def ask(
        session_id: str, call: ToolCall, choices: Iterable[dict[str, str]], withdraw: AbortSignal
    ) -> dict[str, Any] | None:
        return await bridge.ask(session_id, call, choices, withdraw)

    async def export(session_id: str, given: str) -> str:
        session = bridge.session(session_id).agent.session
        return await write_markdown(session, given, find_tool=lambda name: tools.get(name, session_id))

    def prompt_owns(session_id: str) -> bool:
        return bridge.prompt_owns_turn(session_id)

    def tell(session_id: str, title: str, description: str) -> None:
        notice = {"severity": "warning", "title": title, "description": description}
        bridge.session(session_id).agent.session.append("session/notice", notice)

    permission = settings.config.permission
    written = configured_rules(allow=permission.allow, deny=permission.deny)
    book = RuleBook(Ledger(settings.permissions_root), tell=tell, configured=written)
    policy = EditorPolicy(
        default_mode=settings.permission_mode,
        send=ask,
        prompt_owns=prompt_owns,
        book=book,
        unprompted=runtime if settings.config.loop.ask == "client" else None,
    )
    commands.register(PermissionsCommand(book))

    def options(cwd: str) -> AgentOptions:
        compaction = session_config(settings.config, cwd).compaction
        # which model it talks to is the session's choice
        return AgentOptions(
            provider=settings.provider,
            model="",
            system_prompt=default_sections(cwd),
            compact_at=compaction.threshold if compaction.enabled else None,
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
            keys=(*credentials.configured.values(), *start.stored.values()),
        )
        executor = make_executor(
            start,
            shown,
            tasks,
            roots=lambda session_id: agent.roots if (agent := registry.get(session_id)) else (),
        )
        loops, projections = make_loops(registry, tools, commands, hooks=hooks, runtime=runtime, tasks=tasks, log=log)
        mcp = make_mcp(start, shown, tasks, hooks=hooks, tools=tools)
        parts = Parts(
            registry=registry,
            tools=tools,
            commands=commands,
            executor=executor,
            mcp=mcp,
            loops=loops,
            projections=projections,
            policy=policy,
            hooks=hooks,
            runtime=runtime,
            options=options,
            offer=lambda cwd: session_offer(base, cwd, settings=settings, log=log),
            secrets=start.secrets,
            terminal_environment=additions(start.environment) if settings.config.terminal == "client" else None,
        )
        bridge = Bridge(parts, peer, asyncio.get_running_loop().call_later)
        for command in (*choice_commands(bridge), ExportCommand(export)):
            commands.register(command)
        bash, *others = make_tools(
            executor,
            notify_session,
            ask=EditorForms(peer, bridge.session, secrets=start.secrets),
            runner=bridge.command_runner,
        )
        bash.register_completion()
        for tool in (bash, *others):
            tools.register(tool)
        connection = Connection(bridge, credentials, start.sign_in, start.problem, fork=start.fork, images=start.images)
        offer_socket(
            partial(run_line, connection),
            places=partial(socket_places, start.environment),
            hooks=hooks,
            runtime=runtime,
            tasks=tasks,
            log=log,
        )
        if isinstance(runtime, VirtualRuntime):
            connection.advance = runtime.advance
        if start.greeting.initialize_params is not None:
            connection.accept(start.greeting.initialize_params)
        if start.greeting.opened is not None:
            adopt(connection, start.greeting.opened)
            # the client has its session, so nobody waits until a person has written a prompt
            adapters[settings.provider].prepare()
        tasks.start_soon(stop_on_signal, peer.stop, start.signals)
        tasks.start_soon(stop_on_parent_death, start.parent, peer.stop)

        async def end() -> None:
            with anyio.move_on_after(SHUTDOWN_SECONDS, shield=True):
                await bridge.shutdown()
                async with anyio.create_task_group() as ending:
                    ending.start_soon(executor.dispose)
                    ending.start_soon(mcp.dispose)

        try:
            await peer.serve(V1Dispatcher(connection), preread=start.greeting.preread, on_eof=end)
        finally:
            with anyio.move_on_after(1, shield=True):
                await llm.aclose()
            tasks.cancel_scope.cancel()
        # inside: Python 3.11 stops tracing a frame that a cancelled task group has left
        return REPLAY_FAILED if replay and replay.failed else None
