"""`dsh-acp-agent ui`: the sessions of this machine on a page of this machine."""
