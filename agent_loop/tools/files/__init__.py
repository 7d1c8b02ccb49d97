"""The file tools: read, write, edit, list, glob and grep, and where they read and write."""
