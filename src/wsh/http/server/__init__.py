"""Listening: sockets, connections, and the checks that every request passes first."""
