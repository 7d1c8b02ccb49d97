"""Loops: prompts that an agent sends to itself at a fixed interval (contract loops.md)."""
