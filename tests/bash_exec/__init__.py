"""Tests: bash_exec."""
