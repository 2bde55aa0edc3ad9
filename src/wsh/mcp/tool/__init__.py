"""The fourteen terminal tools. `make_terminal_tools` gives their registrations, in the order they are listed."""
