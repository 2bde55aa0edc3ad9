"""What is remembered of each caller: where its last input to each session was, since what it waits for comes after that."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Marks:
    inputs: dict[tuple[str, str], int] = field(default_factory=dict)
    """The generation before the last input, by the caller's id and the session's."""

    def forget_owner(self, owner: str) -> None:
        """Its connection ended."""
        self.inputs = {key: mark for key, mark in self.inputs.items() if key[0] != owner}

    def forget_session(self, sid: str) -> None:
        """It is gone."""
        self.inputs = {key: mark for key, mark in self.inputs.items() if key[1] != sid}
