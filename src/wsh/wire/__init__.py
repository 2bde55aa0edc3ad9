"""The words every door speaks: names, parameters, results, events, error codes, settings, places.

Imports nobody. Modules here that need pydantic say so; `error`, `setting`, `place` and `name` use the standard
library alone, because the command line imports them at start.
"""
