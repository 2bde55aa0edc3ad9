"""Overlays, panels, their layout, the compositor and viewers."""
