"""Tests: agent_loop.llm.openai_compat."""
