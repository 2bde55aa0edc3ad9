"""From a request to a running program: spawning it, and what holds it in."""
