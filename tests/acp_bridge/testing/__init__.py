"""Tests: acp_bridge.testing."""
