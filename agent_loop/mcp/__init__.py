"""Servers of the Model Context Protocol that a session was given: their tools become tools of its agent."""
