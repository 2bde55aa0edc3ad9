"""The picture of a session: cells, layout, the compositor, and the painter that sends what changed."""
