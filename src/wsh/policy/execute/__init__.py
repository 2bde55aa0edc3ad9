"""What is executed after a decision: the very file in the very folder, never on wsh's own files."""
