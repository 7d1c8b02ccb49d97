"""Where the chosen provider's key comes from (llm.md §5, acp.md §2 "Auth methods").

May not know: HTTP, ACP. Invariant: the key is looked up anew for each call; it is given to an adapter and to nobody
else, and shows in no repr.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Credential:
    """`environment` is the environment as it was at start (the process's own was wiped).

    `variable` and `configured` None: the provider needs no key. `required` False: nothing is ever missing (a replay).
    """

    variable: str | None
    configured: str | None = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    required: bool = True

    @property
    def key_variable(self) -> str | None:
        """What to name to a person who has no key."""
        return self.variable if self.required else None

    def key(self) -> str | None:
        """The variable's value, else the configuration's; None when there is none."""
        found = self.environment.get(self.variable, "").strip() if self.variable else ""
        return found or self.configured

    def missing(self) -> str | None:
        """The fix when a key is needed and there is none; None when the provider can be used."""
        if self.key_variable is None or self.key():
            return None
        return f"set {self.variable} in the environment that your editor gives to the agent, then restart it"
