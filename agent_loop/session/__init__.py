"""The append-only session log and everything derived from it."""
