"""git, asked about repositories that nobody vouches for. Knows no other room."""
