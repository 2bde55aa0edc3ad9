"""Files, index, search and transcripts of a workspace."""
