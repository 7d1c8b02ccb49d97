"""The adapter for DeepSeek and every OpenAI-compatible endpoint."""
