"""Tests: acp_bridge."""
