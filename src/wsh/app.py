"""Composition root: the only file that knows every room."""
