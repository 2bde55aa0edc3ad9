"""What the pages of `wsh attach` have in common: they are shown by messages to the server and take keys until they are done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from wsh.client.attach.keystroke import Keystroke

Message: TypeAlias = dict[str, object]


@dataclass(frozen=True)
class Done:
    """The page is over. `copied` goes to the terminal's clipboard, `session` is the one to go to."""

    copied: str = ""
    session: str = ""
    told: str = ""
    """Something to say in the last row."""


class AttachPage(Protocol):
    def show(self, rows: int, cols: int) -> list[Message]:
        """Messages that show the page on a terminal of that size; its last row is for a hint."""

    def press(self, key: Keystroke) -> Done | None:
        """What the person did; Done when the page is over."""
