"""The rules that an agent with little provokes nothing of: each leaves this list when ours gets what it is about."""

NEEDS_A_RICH_AGENT = ("TOOL-06", "PERM-03", "CFG-03")
