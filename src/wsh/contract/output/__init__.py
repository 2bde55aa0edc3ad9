"""What programs of the contract printed, kept for their callers to read."""
