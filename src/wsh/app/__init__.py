"""Composition root: the only room that knows every room.

`boot` listens and starts the rest, `door` is served before the rooms are open, `compose` opens and wires the rooms, `deferred` and `deferred_rooms` those
that take long to import, `lifetime` decides how long a server lives, `migration` brings the state folder up to date, `headless` starts programs for the
policy's rooms on the keeper's runner.
"""
