"""Files of a workspace: which there are, reading one, and cutting its text into chunks."""
