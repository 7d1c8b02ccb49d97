"""JSON-RPC 2.0 over stdio. Knows no ACP."""
