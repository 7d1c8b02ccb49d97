"""The file tools on a real directory, without an agent around them."""

from pathlib import Path
from typing import Any

from agent_loop.abort import AbortController
from agent_loop.hooks import Hooks
from agent_loop.tools.files.disk import DiskFiles
from agent_loop.tools.files.edit import EditTool
from agent_loop.tools.files.glob import GlobTool
from agent_loop.tools.files.grep import GrepTool
from agent_loop.tools.files.listing import ListTool
from agent_loop.tools.files.read import ReadTool
from agent_loop.tools.files.seam import FileBackend
from agent_loop.tools.files.write import WriteTool
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.seam import Tool, ToolCall, ToolContext, ToolOutcome
from agent_loop.vocabulary import JsonObject

TOOLS: dict[str, Tool] = {
    tool.name: tool for tool in (ReadTool(), WriteTool(), EditTool(), ListTool(), GlobTool(), GrepTool())
}


class FileTools:
    """One session in `root`. `abort` ends its turn."""

    def __init__(self, root: Path, *, roots: tuple[Path, ...] = (), permitted: tuple[Path, ...] = ()) -> None:
        self.root = root
        self.abort = AbortController()
        self.files: FileBackend = DiskFiles()
        self._roots = (str(root), *map(str, roots))
        self._permitted = tuple(map(str, permitted))
        self._registry = ToolRegistry(Hooks(lambda _name, _error: None))
        for tool in TOOLS.values():
            self._registry.register(tool)

    @property
    def context(self) -> ToolContext:
        """What the tools are given."""
        return ToolContext(
            "s1", str(self.root), self.abort, roots=self._roots, permitted=self._permitted, files=self.files
        )

    async def run(self, name: str, **arguments: Any) -> ToolOutcome:
        """Run one call, as the registry does."""
        return await self._registry.execute(ToolCall("c1", name, arguments, ""), self.context, agent="s1")

    async def text(self, name: str, **arguments: Any) -> str:
        """The text of a call that succeeds; the root is `$`."""
        outcome = await self.run(name, **arguments)
        assert not outcome.is_error, outcome
        return self._text(outcome)

    async def error(self, name: str, **arguments: Any) -> tuple[str, str]:
        """Code and text of a call that fails; the root is `$`."""
        outcome = await self.run(name, **arguments)
        assert outcome.is_error, outcome
        assert outcome.error is not None
        return outcome.error["code"], self._text(outcome).removeprefix("Error: ")

    async def preview(self, name: str, **arguments: Any) -> JsonObject | ToolOutcome | None:
        """What a question about the call would show."""
        return await self._registry.prepare(ToolCall("c1", name, arguments, ""), self.context, agent="s1")

    def _text(self, outcome: ToolOutcome) -> str:
        return outcome.content[0]["text"].replace(str(self.root), "$")
