"""Session events to ACP v1 updates: pure, total, no I/O."""
