"""The index of a workspace: building it, keeping it fresh, its files on disk."""
