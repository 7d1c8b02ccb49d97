"""The agent's face to an editor: ACP over stdio. Imports agent_loop, is imported by nothing below."""

VERSION = "0.1.0"
