"""What the editor may ask, one package per protocol version."""
