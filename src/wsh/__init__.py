"""wsh: one terminal server that AI agents and people share."""

__version__ = "0.1.0"
