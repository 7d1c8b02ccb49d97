"""Tests: acp_bridge.rpc."""
