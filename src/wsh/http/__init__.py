"""The HTTP and WebSocket door: translates, never decides."""
