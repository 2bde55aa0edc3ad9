"""What a session leaves on disk: journal, sidecar, description and snapshots; and reading it back."""
