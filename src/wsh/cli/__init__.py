"""The command line: one command per file, over the client."""
