"""Commands in a session: the line that is typed, running one, its output."""
