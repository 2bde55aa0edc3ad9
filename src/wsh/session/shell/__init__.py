"""Shells that wsh starts: their integration, the marks that they print, and the PATH of the user's own."""
