"""Every standing rule that holds for a session: its own, its project's, and those of the user's configuration.

May not know: modes, questions, calls. Invariant: what is listed is what holds; a rule that could not be saved holds for
the session, and its owner is told so.
"""

import os
from collections.abc import Callable, Iterable

from acp_bridge.permission.ledger import Ledger
from acp_bridge.permission.rules import PrefixRule, Rule
from acp_bridge.permission.wording import covered
from agent_loop.commands.permissions import PermissionRules, ShownRule

Tell = Callable[[str, str, str], None]
"""`tell(session_id, title, description)`: a notice in that session."""


def configured_rules(*, allow: Iterable[str], deny: Iterable[str]) -> tuple[Rule, ...]:
    """The rules of the configuration: each the first words of a command."""
    return (
        *(Rule("allow", PrefixRule(tuple(words.split())), "config") for words in allow),
        *(Rule("deny", PrefixRule(tuple(words.split())), "config") for words in deny),
    )


class RuleBook(PermissionRules):
    """`configured` rules cannot be revoked here: they stand in a file that only the user changes."""

    def __init__(self, ledger: Ledger, *, tell: Tell, configured: Iterable[Rule] = ()) -> None:
        self._ledger = ledger
        self._tell = tell
        self._configured = tuple(configured)
        self._session: dict[str, tuple[Rule, ...]] = {}
        self._told: set[str] = set()

    def standing(self, session_id: str, project: str) -> tuple[Rule, ...]:
        """The rules that hold, in the order in which they are listed."""
        return (*self._session.get(session_id, ()), *self._ledger.saved(project).rules, *self._configured)

    def is_whole(self, session_id: str, project: str) -> bool:
        """The project's rules could be read. When not, the session is told once."""
        problem = self._ledger.saved(project).problem
        if problem is None:
            return True
        if session_id not in self._told:
            self._told.add(session_id)
            self._tell(
                session_id,
                "The saved permissions of this project cannot be read",
                f"{self._ledger.path(project)}: {problem}. Nothing runs without a question until the file is repaired "
                "or removed; /permissions revoke all puts it aside.",
            )
        return False

    def add(self, session_id: str, project: str, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        """Remember rules of one scope; the rules as they were remembered, of the session when they cannot be saved."""
        if rules[0].scope == "project":
            try:
                self._ledger.add(project, rules)
            except OSError as error:
                rules = tuple(Rule(rule.effect, rule.target, "session") for rule in rules)
                text = f"{error}. It holds for this session only."
                self._tell(session_id, "The permission could not be saved", text)
            else:
                return rules
        before = self._session.get(session_id, ())
        self._session[session_id] = tuple(dict.fromkeys([*before, *rules]))
        return rules

    def forget(self, session_id: str) -> None:
        """The session has ended, and its own rules with it."""
        self._session.pop(session_id, None)
        self._told.discard(session_id)

    def listed(self, session_id: str, cwd: str) -> tuple[ShownRule, ...]:
        """As `standing`, for a person."""
        project = os.path.realpath(cwd)
        return tuple(
            ShownRule(rule.effect, covered((rule.target,), project), rule.scope, revocable=rule.scope != "config")
            for rule in self.standing(session_id, project)
        )

    def revoke(self, session_id: str, cwd: str, numbers: Iterable[int]) -> str | None:
        """Revoke what `listed` shows at these places; why it could not be, or None."""
        project = os.path.realpath(cwd)
        rules = self.standing(session_id, project)
        gone = tuple(rules[number] for number in numbers)
        kept = tuple(rule for rule in self._session.get(session_id, ()) if rule not in gone)
        self._session[session_id] = kept
        try:
            self._ledger.remove(project, gone)
        except OSError as error:
            return str(error)
        return None
