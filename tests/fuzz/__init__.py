"""Bytes made to break the terminal engine, tried in children that may die: `python -m tests.fuzz` (`make fuzz`)."""
