"""Rules: what they match, those that are shipped, and those that are proposed for a project."""
