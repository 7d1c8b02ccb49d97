"""The test suite; it mirrors the houses."""
