"""The agent, without any editor: session log, model, tools, turns."""
