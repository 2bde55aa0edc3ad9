"""What children print: streams into rings, and the journal on disk."""
