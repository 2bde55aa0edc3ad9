"""Events of a session, told to its listeners.

Events are plain values, delivered synchronously on the loop in the order they happened. A listener must be quick and must
not raise; one that does is logged and the others still hear. `Output` comes once per turn of the pump, however many reads
it covers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from wsh.wire.caller import Actor as Actor
from wsh.wire.caller import ActorKind as ActorKind

log = logging.getLogger(__name__)

Event = TypeVar("Event")
Callback = TypeVar("Callback", bound=Callable[..., object])

SERVER = Actor("server", "wsh")


@dataclass(frozen=True)
class Output:
    """The bytes from `start` up to `end` (absolute offsets) have been parsed."""

    start: int
    end: int


@dataclass(frozen=True)
class Input:
    """`actor` typed `size` bytes. The bytes themselves go to the child alone."""

    actor: Actor
    size: int
    generation: int


@dataclass(frozen=True)
class Resized:
    rows: int
    cols: int


@dataclass(frozen=True)
class Exited:
    exit_code: int | None
    """None if nobody can know it any more: the keeper died."""
    signal: int | None


@dataclass(frozen=True)
class Renamed:
    old: str
    new: str


@dataclass(frozen=True)
class TagsChanged:
    tags: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class TitleChanged:
    title: str


@dataclass(frozen=True)
class CwdChanged:
    cwd: str


@dataclass(frozen=True)
class Bell:
    pass


@dataclass(frozen=True)
class Clipboard:
    """The program asked to set the clipboard (OSC 52 write)."""

    data: bytes


@dataclass(frozen=True)
class Notification:
    title: str
    body: str


@dataclass(frozen=True)
class ScreenModeChanged:
    alternate: bool


@dataclass(frozen=True)
class TakenOver:
    """A person took the session (`by`), or handed it back (None)."""

    by: str | None


@dataclass(frozen=True)
class PromptShown:
    """The integrated shell has shown a prompt, or asks for the rest of a command, and reads a line."""

    count: int


@dataclass(frozen=True)
class LineTold:
    """The integrated shell has told the line that is being typed; `count` is how often it has."""

    count: int


@dataclass(frozen=True)
class RunWaitChanged:
    """`actor` wants to run `command` and waits until the line is free; None: nobody waits any more."""

    actor: Actor | None
    command: str = ""


@dataclass(frozen=True)
class CommandStarted:
    id: int


@dataclass(frozen=True)
class CommandFinished:
    id: int


@dataclass(frozen=True)
class Destroyed:
    """The session is gone; nothing can be read from it any more."""

    exit_code: int | None


SessionEvent: TypeAlias = (
    Output
    | Input
    | Resized
    | Exited
    | Renamed
    | TagsChanged
    | TitleChanged
    | CwdChanged
    | Bell
    | Clipboard
    | Notification
    | ScreenModeChanged
    | TakenOver
    | PromptShown
    | LineTold
    | RunWaitChanged
    | CommandStarted
    | CommandFinished
    | Destroyed
)


class Callbacks(Generic[Callback]):
    """Callbacks in the order in which they came. Adding and removing take the same time however many there are."""

    __slots__ = ("_by_key", "_in_order")

    def __init__(self) -> None:
        self._by_key: dict[object, Callback] = {}
        self._in_order: tuple[Callback, ...] | None = ()

    def add(self, callback: Callback) -> Callable[[], None]:
        """The returned function removes it and may be called twice."""
        key = object()
        self._by_key[key] = callback
        self._in_order = None

        def remove() -> None:
            if self._by_key.pop(key, None) is not None:
                self._in_order = None

        return remove

    @property
    def in_order(self) -> tuple[Callback, ...]:
        """The callbacks as they are now. Adding or removing one while they are called changes nothing here."""
        if self._in_order is None:
            self._in_order = tuple(self._by_key.values())
        return self._in_order


class Listeners(Callbacks[Callable[[Event], None]]):
    """Callbacks that hear of events."""

    __slots__ = ()

    def tell(self, event: Event) -> None:
        for callback in self.in_order:
            try:
                callback(event)
            except Exception:
                log.exception("a listener failed on %s", type(event).__name__)
