"""The C library libghostty behind typed functions: its declarations, callbacks, limits, and the output that it dies of."""
