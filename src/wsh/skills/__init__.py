"""Nine guides for agents, served as prompts."""
