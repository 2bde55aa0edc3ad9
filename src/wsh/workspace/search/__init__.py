"""Searching: queries, scans, ranking, and the lines that are shown."""
