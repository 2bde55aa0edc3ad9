"""Spawn, pty, kill a tree, and the keeper that outlives the server.

Knows no escape sequence and no session; the keeper itself uses the standard library alone.
"""
