"""The seam between the executor and what encloses its commands.

May not know: which program encloses, what is shown inside. Invariant: the supervisor of an owner's commands is the
first process of the enclosure, so that nothing inside outlives it; no number that comes from inside is ever signalled
outside.
"""

from abc import ABC, abstractmethod


class Enclosure(ABC):
    """Encloses the commands of one owner, apart from those of every other."""

    @abstractmethod
    async def prefix(self, owner: str) -> list[str]:
        """What stands before the argv of the owner's supervisor.

        It must start the supervisor as process 1 of a PID namespace and as its own only child. Raises `ExecutorError`
        when this system cannot do it; asked again for the next command then.
        """
