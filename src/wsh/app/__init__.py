"""Composition root: the only room that knows every room.

`server` listens and wires the rooms together, `late` opens those that take long to import, `lifetime` decides how long a server lives,
`migration` brings the state folder up to date, `headless` starts programs for the policy's rooms on the keeper's runner.
"""
