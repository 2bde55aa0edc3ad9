"""What is remembered of each caller: where its last input to each session was, since what it waits for comes after that."""

from __future__ import annotations

from wsh.wire.caller import Caller

MOST = 4096
"""Marks that are kept; the oldest go first."""


class Marks:
    def __init__(self) -> None:
        self._inputs: dict[tuple[str, str], int] = {}

    def note_input(self, caller: Caller, sid: str, generation: int) -> None:
        """`generation` is that from before the input."""
        key = (caller.id, sid)
        self._inputs.pop(key, None)
        self._inputs[key] = generation
        if len(self._inputs) > MOST:
            del self._inputs[next(iter(self._inputs))]

    def find_input(self, caller: Caller, sid: str) -> int | None:
        return self._inputs.get((caller.id, sid))

    def forget_owner(self, owner: str) -> None:
        """Call when the connection of `owner` has ended."""
        self._inputs = {key: mark for key, mark in self._inputs.items() if key[0] != owner}

    def forget_session(self, sid: str) -> None:
        """Call when the session has been removed."""
        self._inputs = {key: mark for key, mark in self._inputs.items() if key[1] != sid}
