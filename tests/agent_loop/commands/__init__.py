"""Tests: agent_loop.tools."""
