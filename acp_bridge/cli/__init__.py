"""The subcommands of `dsh-acp-agent` for people."""
