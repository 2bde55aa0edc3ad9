"""`policy.toml`: reading, checking and changing it, and its newest content while a server runs."""
