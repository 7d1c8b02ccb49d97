"""Does an agent keep the protocol, and does it survive the clients that exist? Rules, checks, and what runs them."""
