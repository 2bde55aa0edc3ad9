"""Typed client of the HTTP/WS door, and the stdio pump."""
