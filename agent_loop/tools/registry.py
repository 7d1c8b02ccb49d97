"""Which tools exist, for whom, and the wall around running one.

May not know: any concrete tool. Invariant: `execute` never raises (cancellation passes): whatever a tool or a layer
does, the model gets an outcome. A name means one tool in the eyes of one agent.
Source: contract tools-and-bash.md §1.
"""

from agent_loop.errors import DuplicateError, HarnessError
from agent_loop.hooks import Hooks, Remover
from agent_loop.tools.schema import SchemaSpec, from_json_schema, validate_args
from agent_loop.tools.seam import Tool, ToolCall, ToolContext, ToolOutcome
from agent_loop.vocabulary import JsonObject


class ToolRegistry:
    """Explicit registration; a tool registered for an agent is visible to that agent alone.

    Emits `tools/change` after every change. Runs calls through the around-chain `tools/execute`, whose layers are
    `async layer(call, context, next) -> ToolOutcome`.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._tools: dict[str | None, dict[str, tuple[Tool, SchemaSpec]]] = {None: {}}  # by agent and name
        self._schemas: dict[str | None, list[JsonObject]] = {}

    def register(self, tool: Tool, *, agent: str | None = None) -> Remover:
        """Offer `tool` to every agent, or to one. Raises `DuplicateError` when an agent would see two of that name."""
        taken = {scope for scope, tools in self._tools.items() if tool.name in tools}
        if None in taken or agent in taken or (agent is None and taken):
            raise DuplicateError("tool", tool.name)
        entry = (tool, from_json_schema(tool.parameters))
        self._tools.setdefault(agent, {})[tool.name] = entry
        self._forget_schemas(agent)
        self._hooks.emit("tools/change", agent=agent)

        def remove() -> None:
            # the name may have been registered anew since; only our own entry is ours to remove
            tools = self._tools.get(agent, {})
            if tools.get(tool.name) is entry:
                del tools[tool.name]
                if agent is not None and not tools:
                    del self._tools[agent]
                self._forget_schemas(agent)
                self._hooks.emit("tools/change", agent=agent)

        return remove

    def get(self, name: str, agent: str) -> Tool | None:
        """The tool that `agent` sees under `name`."""
        found = self._find(name, agent)
        return found[0] if found else None

    def schemas(self, agent: str) -> list[JsonObject]:
        """`[{name, description, parameters}]` for the model, by name: the order never depends on who came first.

        The same list each time, until a tool comes or goes: do not change it.
        """
        own = self._tools.get(agent)
        scope = agent if own else None
        rows = self._schemas.get(scope)
        if rows is None:
            visible = [tool for tool, _ in (*self._tools[None].values(), *(own or {}).values())]
            rows = self._schemas[scope] = [
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
                for tool in sorted(visible, key=lambda tool: tool.name)
            ]
        return rows

    async def execute(self, call: ToolCall, context: ToolContext, *, agent: str) -> ToolOutcome:
        """Run one call. Failures are outcomes: codes `UNKNOWN_TOOL`, `INVALID_ARGS`, the error's own, `TOOL_FAILED`."""

        async def innermost(call: ToolCall, context: ToolContext) -> ToolOutcome:
            return await self._run(call, context, agent)

        try:
            return await self._hooks.around("tools/execute", innermost, agent=agent)(call, context)
        except Exception as error:  # noqa: BLE001 - the tool wall: a tool's bug is the model's to read, not the turn's end
            return _failure(error)

    async def prepare(self, call: ToolCall, context: ToolContext, *, agent: str) -> JsonObject | ToolOutcome | None:
        """What an ask about this call shows (`Tool.prepare`); an outcome when the call can only fail.

        None also when there is a preview that cannot be made.
        """
        try:
            return await self._tool(call.name, agent).prepare(call.arguments, context)
        except HarnessError as error:
            return _failure(error)
        except Exception:  # noqa: BLE001 - the tool wall: without a preview the question is still a question
            return None

    def refusal(self, call: ToolCall, agent: str) -> ToolOutcome | None:
        """Why `call` cannot run (`UNKNOWN_TOOL`, `INVALID_ARGS`); None when it can."""
        found = self._find(call.name, agent)
        if found is None:
            names = ", ".join(row["name"] for row in self.schemas(agent)) or "none"
            return ToolOutcome.failed(
                f"there is no tool {call.name!r}; available: {names}", name="UnknownToolError", code="UNKNOWN_TOOL"
            )
        if violations := validate_args(found[1], call.arguments):
            return ToolOutcome.failed(
                f"invalid arguments for {call.name}: {'; '.join(violations)}",
                name="InvalidArgumentsError",
                code="INVALID_ARGS",
            )
        return None

    async def _run(self, call: ToolCall, context: ToolContext, agent: str) -> ToolOutcome:
        return self.refusal(call, agent) or await self._tool(call.name, agent).run(call.arguments, context)

    def _forget_schemas(self, agent: str | None) -> None:
        # a session that opens or ends changes nothing for the others
        if agent is None:
            self._schemas.clear()
        else:
            self._schemas.pop(agent, None)

    def _tool(self, name: str, agent: str) -> Tool:
        return (self._tools[None].get(name) or self._tools[agent][name])[0]

    def _find(self, name: str, agent: str) -> tuple[Tool, SchemaSpec] | None:
        return self._tools[None].get(name) or self._tools.get(agent, {}).get(name)


def _failure(error: Exception) -> ToolOutcome:
    code = error.code if isinstance(error, HarnessError) else "TOOL_FAILED"
    return ToolOutcome.failed(str(error) or type(error).__name__, name=type(error).__name__, code=code)
