"""Whose keys go where: passthrough or capture, who captured, which element has the focus.

Capture diverts people's keys (of all viewers) to events; agents' input always passes, and so does what people type at a
prompt that hides it. A capture has an owner and is a
lease: the door that sees the owner go calls `end_lease`. Events are kept for readers that come by now and then,
up to a ceiling; what they missed is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from wsh.session.state import is_hidden_now
from wsh.wire.error import InputCaptured, Refused

if TYPE_CHECKING:
    from wsh.session.session import Session

CaptureMode: TypeAlias = Literal["passthrough", "capture"]

KEPT_EVENTS = 1024


@dataclass(frozen=True)
class InputEvent:
    """Keys that a person pressed while input was captured."""

    seq: int
    raw: bytes
    key: str | None
    """The key's name, where it has one: "a", "ctrl+c", "up"."""
    target: str | None
    """The element that had the focus."""
    viewer: str


@dataclass(frozen=True)
class ModeChanged:
    mode: CaptureMode
    owner: str | None


@dataclass(frozen=True)
class FocusChanged:
    focused: str | None


Change: TypeAlias = InputEvent | ModeChanged | FocusChanged


class InputControl:
    def __init__(self, tell: Callable[[Change], None]) -> None:
        self._tell = tell
        self.owner: str | None = None
        """Who captured; None in passthrough."""
        self._by_agent = False
        self.focused: str | None = None
        self._readers: dict[str, int] = {}
        """Up to where each who captured has read the events."""
        self._events: deque[InputEvent] = deque(maxlen=KEPT_EVENTS)
        self._next_seq = 1

    @property
    def mode(self) -> CaptureMode:
        return "passthrough" if self.owner is None else "capture"

    @property
    def next_seq(self) -> int:
        """The number that the next event will have: where to read from, to hear what is new."""
        return self._next_seq

    def is_diverting(self, session: Session) -> bool:
        """Whether keys that a person presses now become events. At a prompt that hides them they go to the program."""
        return self.owner is not None and not is_hidden_now(session)

    def capture(self, owner: str, *, by_agent: bool = False) -> None:
        """Divert people's keys to events, for `owner`. Capturing again is no change; another's capture is a conflict."""
        if self.owner not in (None, owner):
            raise InputCaptured(str(self.owner))
        self._readers.setdefault(owner, self._next_seq)
        if self.owner is None:
            self.owner, self._by_agent = owner, by_agent
            self._tell(ModeChanged("capture", owner))

    def release(self, by: str, *, is_person: bool = False) -> None:
        """Let keys pass again, and drop the focus. Only the owner or a person may release. Idempotent."""
        if self.owner is None:
            return
        if self.owner != by and not is_person:
            raise Refused(
                "Input was captured by another and is not yours to release.",
                hint="The caller that captured it can release it, and so can a person.",
            )
        self._end()

    def take_back(self) -> None:
        """A person has the session for themselves: an agent's capture ends, a person's own stays."""
        if self.owner is not None and self._by_agent:
            self._end()

    def end_lease(self, owner: str) -> None:
        """`owner` is gone."""
        self._readers.pop(owner, None)
        if self.owner == owner:
            self._end()

    def focus(self, element_id: str | None) -> None:
        """The element must be known to be focusable; None takes the focus away."""
        if self.focused != element_id:
            self.focused = element_id
            self._tell(FocusChanged(element_id))

    def divert(self, raw: bytes, key: str | None, viewer: str) -> InputEvent:
        """Keys of a person while input is captured."""
        event = InputEvent(self._next_seq, raw, key, self.focused, viewer)
        self._next_seq += 1
        self._events.append(event)
        self._tell(event)
        return event

    def find_mark(self, owner: str) -> int | None:
        """The first event that `owner` has not read; None for who has captured nothing, or has read to the end of it."""
        return self._readers.get(owner)

    def take_events(self, owner: str) -> tuple[list[InputEvent], int]:
        """What came for `owner` since it last asked, and how many events were dropped unread."""
        mark = self._readers.get(owner)
        if mark is None:
            return [], 0
        events, following, dropped = self.read_events(mark)
        if self.owner == owner:
            self._readers[owner] = following
        else:
            del self._readers[owner]
        return events, dropped

    def read_events(self, since: int, limit: int = KEPT_EVENTS) -> tuple[list[InputEvent], int, int]:
        """Events numbered from `since` on: themselves, the number to go on from, and how many were dropped unread."""
        first = self._events[0].seq if self._events else self._next_seq
        found = [event for event in self._events if event.seq >= since][:limit]
        following = found[-1].seq + 1 if found else max(since, first)
        return found, following, max(0, first - since)

    def _end(self) -> None:
        self.owner = None
        self.focus(None)
        self._tell(ModeChanged("passthrough", None))
