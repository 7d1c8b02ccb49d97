"""Tests: agent_loop.loops."""
