"""The WebSockets: JSON, raw bytes, and a viewer's pictures."""
