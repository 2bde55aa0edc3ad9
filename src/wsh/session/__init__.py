"""The core: lifetime, input, waiting, journal, recovery, shell integration.

Stands on `terminal` and `process`; no door, no policy and no viewer is known here.
"""
