"""What terminals printed, as documents that can be searched."""
