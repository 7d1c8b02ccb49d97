"""Where a command's chunks go: windows, spill files, a listener or a ring (contract tools-and-bash.md §4, "Output").

May not know: pipes, processes, why a command ends. Invariants: memory is bounded whatever arrives; `take` returns False
from the moment the command's output cap is reached; no secret gets past it (§5): each stream is redacted as it arrives.
"""

from abc import ABC, abstractmethod

from bash_exec.capture import OutputPiece, OutputWindow, UnreadOutput
from bash_exec.seam import OutputListener, StreamCapture
from bash_exec.secrets import BytesRedactor, SecretRegistry
from bash_exec.spill import SpillBudget, SpillFile, SpillFolder


class OutputSink(ABC):
    """Takes chunks. `stream` is 0 for stdout, 1 for stderr."""

    def __init__(self, secrets: SecretRegistry) -> None:
        self._redactors = tuple(BytesRedactor(secrets) for _ in range(2))

    async def take(self, stream: int, data: bytes) -> bool:
        """Keep one chunk, less its secrets and a possible beginning of one; False when the cap is reached."""
        return await self._keep(stream, self._redactors[stream].feed(data))

    async def finish(self) -> None:
        """Nothing more comes: keep what was held back."""
        for stream, redactor in enumerate(self._redactors):
            await self._keep(stream, redactor.finish())

    @abstractmethod
    async def _keep(self, stream: int, data: bytes) -> bool:
        """Keep a redacted chunk; False when the cap is reached."""

    @abstractmethod
    def cut(self, stream: int) -> None:
        """Nobody reads the stream any more, but it has not ended: a file of it may not be whole."""

    @abstractmethod
    def discard(self) -> None:
        """Nobody will hear of the files."""

    @abstractmethod
    def close(self) -> None:
        """Close the files."""


class ForegroundOutput(OutputSink):
    """Two windows, each with its own spill file; the listener sees every chunk as it arrives."""

    def __init__(
        self,
        folder: SpillFolder,
        *,
        head: int,
        tail: int,
        cap: int,
        listener: OutputListener | None,
        secrets: SecretRegistry,
    ) -> None:
        super().__init__(secrets)
        budget = SpillBudget(cap)
        self._windows = tuple(OutputWindow(head=head, tail=tail) for _ in range(2))
        self._files = tuple(SpillFile(folder, budget) for _ in range(2))
        self._listener = listener

    async def _keep(self, stream: int, data: bytes) -> bool:
        spill = self._windows[stream].feed(data)
        if data and self._listener is not None:
            self._listener(data)
        return not spill or await self._files[stream].write(spill)

    def cut(self, stream: int) -> None:
        self._files[stream].withdraw()

    def discard(self) -> None:
        for file in self._files:
            file.withdraw()

    def close(self) -> None:
        for file in self._files:
            file.close()

    def captures(self) -> tuple[StreamCapture, StreamCapture]:
        """stdout and stderr as they stand."""
        out, err = (window.capture(file.path) for window, file in zip(self._windows, self._files, strict=True))
        return out, err


class BackgroundOutput(OutputSink):
    """Both streams in order of arrival: a ring of what is unread, one spill file from the first overflow on."""

    def __init__(self, folder: SpillFolder, *, head: int, tail: int, cap: int, secrets: SecretRegistry) -> None:
        super().__init__(secrets)
        self._window = OutputWindow(head=head, tail=tail)
        self._unread = UnreadOutput(limit=head + tail)
        self._file = SpillFile(folder, SpillBudget(cap))

    async def _keep(self, stream: int, data: bytes) -> bool:  # noqa: ARG002 - the sink's shape; the streams are one here
        spill = self._window.feed(data)
        self._unread.feed(data)
        return not spill or await self._file.write(spill)

    def cut(self, stream: int) -> None:  # noqa: ARG002 - the sink's shape; the streams are one here
        self._file.withdraw()

    def discard(self) -> None:
        self._file.withdraw()

    def close(self) -> None:
        self._file.close()

    def note(self, text: str) -> None:
        """Add a line of ours behind the output."""
        self._unread.feed(f"\n[{text}]\n".encode())

    def read(self, offset: int | None, *, final: bool) -> tuple[OutputPiece, str | None]:
        """The output from `offset` on, or what is unread, and the file that has what was lost before it."""
        piece = self._unread.take(final=final) if offset is None else self._unread.peek(offset, final=final)
        return piece, self._file.path if piece.lost else None
