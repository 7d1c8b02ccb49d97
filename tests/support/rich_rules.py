"""The rules that an agent with little provokes nothing of: each leaves this list when ours gets what it is about."""

NEEDS_A_RICH_AGENT = (
    "PROMPT-04",
    "TOOL-06",
    "PERM-03",
    "CFG-01",
    "CFG-02",
    "CFG-03",
    "CFG-04",
    "CFG-05",
    "CFG-06",
    "FS-01",
    "FS-02",
    "FS-03",
)
