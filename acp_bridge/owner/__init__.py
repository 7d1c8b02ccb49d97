"""How another process of the same user speaks to the one that has a session open."""
