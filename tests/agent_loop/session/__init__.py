"""Tests: agent_loop.session."""
