"""The agent's face to an editor: ACP over stdio. Imports agent_loop, is imported by nothing below."""
