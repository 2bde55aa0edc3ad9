"""JSON: text in and out, the type of an object, JSON-RPC framing."""
