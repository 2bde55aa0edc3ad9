"""One person looking at a session, and the connection that they look through."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from wsh.session.event import Actor
from wsh.session.input.receipt import Receipt
from wsh.visual.input.keyboard import Keyboard
from wsh.visual.picture.page import Page
from wsh.visual.picture.painter import ViewShape
from wsh.wire.bracketed_paste import PasteInPieces

_REMEMBERED = 64
"""Viewers that have left."""


class ViewerConnection(Protocol):
    """A viewer's connection, as far as we care."""

    def is_busy(self) -> bool:
        """Whether what was sent before is still on its way."""

    def send(self, data: bytes) -> None:
        """Send bytes for the emulator. Never blocks, never raises."""

    def tell(self, message: dict[str, object]) -> None:
        """Send something that is not a picture: size, bell, exit, mode. Never blocks, never raises."""

    def dismiss(self, reason: str) -> None:
        """End the connection."""


@dataclass
class Viewer:
    """One person looking. Made by `Viewers.attach`, ended by `Viewers.detach`."""

    id: str
    actor: Actor
    outlet: ViewerConnection
    rows: int
    cols: int
    read_only: bool
    status: bool
    whole: bool = False
    """Its picture always has the session's own size, so that it can be scaled; `fits` is what has room there."""
    fits: tuple[int, int] = (24, 80)
    """Rows and columns that the session takes if this viewer gives it its size."""
    scrollback_lines: int = 0
    """Earlier lines that come ahead of a whole picture when the session has another size: then they are laid out anew."""
    reads: tuple[int, int] | None = None
    """Epoch and number of a line that somebody reads: the next earlier lines begin there, or before."""
    renew: bool = False
    """Whether they come with the next one."""
    awaited: int = 0
    """Lines of which it was last told that they are still to come above its picture."""
    top: int = 0
    left: int = 0
    follows_cursor: bool = True
    """Its window moves with the cursor: until the person moves it, and again when they type."""
    stale: bool = True
    """Its picture is not the painter's: it gets a whole one next."""
    active: float = 0.0
    prefix: str = ""
    """The key that the viewer itself acts on, as texts name it; empty where `Keyboard` acts on Ctrl+\\ here."""
    note: str = ""
    """What stands in its last row instead of the status line."""
    has_taken: bool = False
    """Whether its person has taken the keyboard over."""
    wheel: bool = False
    """Whether it is told when the wheel is turned up where the program does not want the mouse."""
    receipt: Receipt = field(default_factory=Receipt)
    """How much of what was typed there the program has."""
    diverted_paste: PasteInPieces = field(default_factory=PasteInPieces)
    """What is pasted there while keys are captured."""
    page: Page | None = None
    """What it shows instead of the session's picture."""

    def __post_init__(self) -> None:
        self.keyboard = Keyboard()

    @property
    def shape(self) -> ViewShape:
        return ViewShape(
            self.rows,
            self.cols,
            self.status,
            self.top,
            self.left,
            self.note,
            self.prefix,
            self.page,
            self.read_only,
            self.has_taken,
            self.wheel,
        )


class PresentViewers(dict[str, Viewer]):
    """All viewers of one session, by their ids."""

    def __init__(self) -> None:
        super().__init__()
        self._left: deque[str] = deque(maxlen=_REMEMBERED)

    def leave(self, id: str) -> bool:
        """False for one that is not there."""
        if self.pop(id, None) is None:
            return False
        self._left.append(id)
        return True

    def has_seen(self, id: str) -> bool:
        """Whether this is a viewer, or was one lately."""
        return id in self or id in self._left
