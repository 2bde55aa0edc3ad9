"""What is remembered of each caller: where its last input to each session was, since what it waits for
comes after that, and which session it works in.
"""

from __future__ import annotations

from wsh.wire.caller import Caller

MOST = 4096
"""Marks that are kept; the oldest go first."""


class Marks:
    def __init__(self) -> None:
        self._inputs: dict[tuple[str, str], int] = {}
        self._homes: dict[str, str] = {}

    def note_input(self, caller: Caller, sid: str, generation: int) -> None:
        """`generation` is that from before the input."""
        key = (caller.id, sid)
        self._inputs.pop(key, None)
        self._inputs[key] = generation
        if len(self._inputs) > MOST:
            del self._inputs[next(iter(self._inputs))]

    def find_input(self, caller: Caller, sid: str) -> int | None:
        return self._inputs.get((caller.id, sid))

    def note_home(self, caller: Caller, sid: str) -> None:
        """The session that is meant where the caller names none."""
        self._homes.pop(caller.id, None)
        self._homes[caller.id] = sid
        if len(self._homes) > MOST:
            del self._homes[next(iter(self._homes))]

    def find_home(self, caller: Caller) -> str | None:
        return self._homes.get(caller.id)

    def forget_owner(self, owner: str) -> None:
        """Call when the connection of `owner` has ended."""
        self._inputs = {key: mark for key, mark in self._inputs.items() if key[0] != owner}
        self._homes.pop(owner, None)

    def forget_session(self, sid: str) -> None:
        """Call when the session has been removed."""
        self._inputs = {key: mark for key, mark in self._inputs.items() if key[1] != sid}
        self._homes = {owner: home for owner, home in self._homes.items() if home != sid}
