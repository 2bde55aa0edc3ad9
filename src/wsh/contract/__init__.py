"""The unified terminal contract: normalise, validate, route, fall back."""
