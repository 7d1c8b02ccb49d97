"""The snapshot harness. Imports nothing of the product, so that it can test any ACP agent."""
