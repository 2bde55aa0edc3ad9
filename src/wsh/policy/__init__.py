"""Parse a command, decide, explain, audit. Pure apart from its own files."""
