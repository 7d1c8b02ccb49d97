"""Tests: acp_bridge.translate."""
