"""The error codes of JSON-RPC 2.0, and the one that answers a cancelled request.

May not know: ACP's own codes (they belong to a protocol version). Invariant: imports nothing.
"""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
