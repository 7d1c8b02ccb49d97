"""The manifest: every rule of the suite, once.

May not know: how a rule is checked. Invariant: ids are unique; the tests hold the manifest against the checks, both
ways.
"""

from acp_bridge.testing.conformance.hostile import HOSTILE_RULES
from acp_bridge.testing.conformance.manifest_connection import CONNECTION_RULES
from acp_bridge.testing.conformance.manifest_turn import TURN_RULES
from acp_bridge.testing.conformance.rule import Rule

RULES: tuple[Rule, ...] = CONNECTION_RULES + TURN_RULES + HOSTILE_RULES
"""In the order of the report."""
