"""How the concrete parts are made and wired; `main` chooses, this does."""
