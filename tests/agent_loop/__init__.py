"""Tests: agent_loop."""
