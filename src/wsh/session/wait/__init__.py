"""Waiting on sessions: for text, a pattern, silence, an end; on one or on any of several."""
