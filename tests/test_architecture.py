"""The import plan of ARCHITECTURE.md, executed: every module of the product is read with `ast`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOUSES = ("acp_bridge", "agent_loop", "bash_exec")
MODULES = sorted(path for house in HOUSES for path in (ROOT / house).rglob("*.py"))

# Rooms of a house, upper rooms first. A module belongs to the first room whose prefix it has; it may import its own
# room and every room behind it. Rooms on one line may not import each other.
AGENT_LOOP = (
    ("agent_loop.loops", "agent_loop.commands", "agent_loop.titles", "agent_loop.instructions", "agent_loop.mcp"),
    ("agent_loop.registry",),
    ("agent_loop.agent",),
    ("agent_loop.turn",),
    ("agent_loop.compaction",),
    ("agent_loop.step",),
    ("agent_loop.prompt",),
    ("agent_loop.tools",),
    ("agent_loop.llm",),
    ("agent_loop.session",),
    ("agent_loop.inbox",),
    ("agent_loop.vocabulary",),
    ("agent_loop.hooks",),
    ("agent_loop.runtime", "agent_loop.abort"),
    ("agent_loop.errors",),
)
ACP_BRIDGE = (
    ("acp_bridge.main",),
    ("acp_bridge.composition",),
    ("acp_bridge.ui",),
    ("acp_bridge.cli", "acp_bridge.methods"),
    ("acp_bridge.bridge",),
    ("acp_bridge.translate", "acp_bridge.permission"),
    ("acp_bridge.rpc", "acp_bridge.schema", "acp_bridge.owner"),
    ("acp_bridge.settings", "acp_bridge.logs"),
)
# Importable by the composition root (and by themselves) only: everybody else speaks to the seam.
LOCKED = (
    "bash_exec.local",
    "bash_exec.sandbox",
    "agent_loop.llm.openai_compat",
    "agent_loop.llm.replay",
    "agent_loop.session.jsonl",
)
COMPOSED = {("bash_exec.sandbox", "bash_exec.local")}  # the sandbox is the local executor with another launcher
# One foreign library, one importer.
CONFINED = {
    "jsonrpc_base": ("acp_bridge.rpc.messages",),
    "httptools": ("agent_loop.llm.openai_compat.connection",),
    "truststore": ("agent_loop.llm.openai_compat.route",),
    "httpx2": ("agent_loop.mcp.remote",),
    "mcp": ("agent_loop.mcp",),
    "starlette": ("acp_bridge.ui.application",),
    "uvicorn": ("acp_bridge.ui.serving",),
}
FORBIDDEN_WORDS = {"utils", "util", "helpers", "helper", "common", "base", "core", "manager", "misc"}
# The light path answers `initialize` before these are imported.
HEAVY = {"pydantic", "pydantic_core", "structlog", "anyio", "asyncio", "httptools", "httpx2", "mcp", "jsonrpc_base"}
# `except Exception` stands at six walls: peer handler, turn, tool registry, presentation, listener, MCP server.
WALLS = {
    "acp_bridge.rpc.incoming",  # peer handler
    "acp_bridge.rpc.writer",  # listener: the hook before a write
    "agent_loop.turn",
    "agent_loop.tools.registry",
    "acp_bridge.translate.v1.cards",  # presentation
    "agent_loop.hooks",  # listener
    "bash_exec.tasks",  # listener: the end of a background command
    "agent_loop.mcp.connection",  # MCP server: a foreign program, spoken to through a foreign library
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            assert node.module is not None
            yield node.module
            # `from package import module` names a module too
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def under(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def room_of(name: str, plan: tuple[tuple[str, ...], ...]) -> tuple[int, str] | None:
    for floor, rooms in enumerate(plan):
        for room in rooms:
            if under(name, room):
                return floor, room
    return None


def violations(name: str, source: str) -> list[str]:
    """Every sentence of the plan that `source`, standing at `name`, breaks."""
    tree = ast.parse(source)
    found: list[str] = []
    house, _, _ = name.partition(".")
    plan = {"agent_loop": AGENT_LOOP, "acp_bridge": ACP_BRIDGE}.get(house)
    testing = under(name, "acp_bridge.testing")
    for target in sorted(set(imports(tree))):
        target_house, _, _ = target.partition(".")
        for library, importers in CONFINED.items():
            if under(target, library) and not any(under(name, importer) for importer in importers):
                found.append(f"{name} imports {target}: only {' and '.join(importers)} may")
        if target_house not in HOUSES:
            continue
        if HOUSES.index(target_house) < HOUSES.index(house):
            found.append(f"{name} imports {target}: imports go down only")
        if testing and not under(target, "acp_bridge.testing") and target != "acp_bridge":
            found.append(f"{name} imports {target}: the test kit imports nothing of the product")
        found.extend(
            f"{name} imports {target}: only the composition names concrete parts"
            for locked in LOCKED
            if under(target, locked)
            and not under(name, locked)
            and not (name == "acp_bridge.main" or under(name, "acp_bridge.composition"))
            and (name, locked) not in COMPOSED
        )
        if plan and target_house == house and not testing:
            here, there = room_of(name, plan), room_of(target, plan)
            if here and there and here != there and there[0] <= here[0]:
                found.append(f"{name} imports {target}: {here[1]} stands below or beside {there[1]}")
    if name not in WALLS:
        found.extend(
            f"{name}:{node.lineno} catches Exception: only the five walls do"
            for node in ast.walk(tree)
            if isinstance(node, ast.ExceptHandler)
            and (
                node.type is None
                or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
            )
            and not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
        )
    return found


def shortcomings(name: str, source: str) -> list[str]:
    """Of a module as such, wherever it stands."""
    found: list[str] = []
    if len(source.splitlines()) > 400:
        found.append(f"{name} is above 400 lines: which room is missing?")
    found.extend(f"{name} is called {word}" for word in re.split(r"[._]", name) if word in FORBIDDEN_WORDS)
    if not ast.get_docstring(ast.parse(source)):
        found.append(f"{name} does not say what it is for")
    return found


# one test for all: as an item for each of them the run has 400 items more
def test_every_module_keeps_the_plan():
    found: list[str] = []
    for path in MODULES:
        name, source = module_name(path), path.read_text("utf-8")
        found += violations(name, source) + shortcomings(name, source)
    assert found == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("agent_loop.turn", "import os"),
        ("agent_loop.turn", '"""Says what it is for."""' + 400 * "\n" + "import os"),
        ("agent_loop.turn_utils", '"""Says what it is for."""'),
        ("agent_loop.core.turn", '"""Says what it is for."""'),
    ],
)
def test_a_module_that_is_too_long_or_says_nothing_or_is_called_anything_is_seen(name: str, source: str):
    assert shortcomings(name, source)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("bash_exec.local", "import agent_loop.errors"),
        ("agent_loop.turn", "from acp_bridge import bridge"),
        ("agent_loop.session.log", "from agent_loop.agent import Agent"),
        ("agent_loop.inbox", "from agent_loop.turn import run"),
        ("agent_loop.tools.bash", "from bash_exec.local import LocalBashExecutor"),
        ("acp_bridge.bridge", "from agent_loop.session.jsonl import JsonlSessionStore"),
        ("acp_bridge.translate.v1.updates", "from acp_bridge.bridge import Bridge"),
        ("acp_bridge.testing.harness", "from acp_bridge.settings import Settings"),
        ("acp_bridge.rpc.peer", "import jsonrpc_base"),
        ("agent_loop.llm.service", "import httptools"),
        ("agent_loop.agent", "from mcp import types"),
        ("acp_bridge.bridge", "try:\n    pass\nexcept Exception:\n    pass"),
        ("acp_bridge.bridge", "try:\n    pass\nexcept:\n    pass"),
    ],
)
def test_a_broken_plan_is_seen(name: str, source: str):
    assert violations(name, source)


def test_the_light_path_imports_nothing_heavy():
    seen: set[str] = set()
    queue = ["acp_bridge.main"]
    while queue:
        name = queue.pop()
        path = ROOT.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in seen or not path.is_file():
            continue
        seen.add(name)
        tree = ast.parse(path.read_text("utf-8"))
        later = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.If  # run later, or TYPE_CHECKING
        top = ast.Module([node for node in tree.body if not isinstance(node, later)], [])
        for target in imports(top):
            assert target.split(".")[0] not in HEAVY, f"{name} imports {target} before initialize is answered"
            if target.split(".")[0] in HOUSES:
                queue.append(target)
    assert "acp_bridge.main" in seen
