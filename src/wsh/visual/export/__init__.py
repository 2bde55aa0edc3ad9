"""A recording or a screen as a file: asciicast, animated SVG, text, HTML, SVG, PNG."""
