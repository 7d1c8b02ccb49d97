"""Where a command's chunks go: windows, spill files, a listener or a ring (contract tools-and-bash.md §4, "Output").

May not know: pipes, processes, why a command ends. Invariant: memory is bounded whatever arrives, and `take` returns
False from the moment the command's output cap is reached.
"""

from abc import ABC, abstractmethod

from bash_exec.capture import OutputWindow, UnreadOutput
from bash_exec.seam import OutputListener, StreamCapture
from bash_exec.spill import SpillBudget, SpillFile, SpillFolder


class OutputSink(ABC):
    """Takes chunks. `stream` is 0 for stdout, 1 for stderr."""

    @abstractmethod
    async def take(self, stream: int, data: bytes) -> bool:
        """Keep one chunk; False when the cap is reached."""

    @abstractmethod
    def close(self) -> None:
        """Close the files."""


class ForegroundOutput(OutputSink):
    """Two windows, each with its own spill file; the listener sees every chunk as it arrives."""

    def __init__(self, folder: SpillFolder, *, head: int, tail: int, cap: int, listener: OutputListener | None) -> None:
        budget = SpillBudget(cap)
        self._windows = tuple(OutputWindow(head=head, tail=tail) for _ in range(2))
        self._files = tuple(SpillFile(folder, budget) for _ in range(2))
        self._listener = listener

    async def take(self, stream: int, data: bytes) -> bool:
        spill = self._windows[stream].feed(data)
        if self._listener is not None:
            self._listener(data)
        return not spill or await self._files[stream].write(spill)

    def close(self) -> None:
        for file in self._files:
            file.close()

    def captures(self) -> tuple[StreamCapture, StreamCapture]:
        """stdout and stderr as they stand."""
        out, err = (window.capture(file.path) for window, file in zip(self._windows, self._files, strict=True))
        return out, err


class BackgroundOutput(OutputSink):
    """Both streams in order of arrival: a ring of what is unread, one spill file from the first overflow on."""

    def __init__(self, folder: SpillFolder, *, head: int, tail: int, cap: int) -> None:
        self._window = OutputWindow(head=head, tail=tail)
        self._unread = UnreadOutput(limit=head + tail)
        self._file = SpillFile(folder, SpillBudget(cap))

    async def take(self, stream: int, data: bytes) -> bool:  # noqa: ARG002 - the sink's shape; the streams are one here
        spill = self._window.feed(data)
        self._unread.feed(data)
        return not spill or await self._file.write(spill)

    def close(self) -> None:
        self._file.close()

    def note(self, text: str) -> None:
        """Add a line of ours behind the output."""
        self._unread.feed(f"\n[{text}]\n".encode())

    def read(self, *, final: bool) -> tuple[str, int, str | None]:
        """Unread text, the bytes lost before it, and the file that has them."""
        text, lost = self._unread.take(final=final)
        return text, lost, self._file.path if lost else None
