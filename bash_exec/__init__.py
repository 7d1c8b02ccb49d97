"""Run a shell command: bounded, contained, without secrets. Knows no agent."""
