"""What a command could destroy and what else it does, from the models in `danger`."""
