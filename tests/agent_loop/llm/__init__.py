"""Tests: agent_loop.llm."""
