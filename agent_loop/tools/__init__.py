"""The tool seam, its registry and the tools."""
