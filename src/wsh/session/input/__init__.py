"""What is typed into a session: by whom, in which order, and what stands on its line."""
