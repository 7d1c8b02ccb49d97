"""Session events to protocol updates, one package per protocol version."""
