"""Tests: agent_loop.mcp."""
