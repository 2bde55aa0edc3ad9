"""What a child prints, from its ring into the terminal of its session.

`pump` is called by the pump alone. Output that the engine is known to die of is tried in a child first and left out if it
kills there; the note in the ring says what is being parsed, for a successor. Marks of the shells are told to the session's
listeners together with the events of the terminal. Knows nothing of input, waiting or viewers.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeAlias

from wsh.process import InputClosed, Ring
from wsh.session import event as ev
from wsh.session.command.command import CommandEvent
from wsh.session.output.pump import LATER
from wsh.session.recovery.examine import BUDGET_S, Fed, Findings, examine, look_everywhere
from wsh.session.recovery.gap import Gaps
from wsh.session.recovery.note import Notes
from wsh.session.recovery.trial import attempt
from wsh.session.shell.mark import NonceMask
from wsh.session.shell.nesting import Shells
from wsh.terminal import buffer_of
from wsh.terminal import event as te
from wsh.terminal.engine.note import Work

if TYPE_CHECKING:
    from wsh.session.session import Session

log = logging.getLogger(__name__)

Tap: TypeAlias = Callable[[int, bytes], None]
_AHEAD_BYTES = 16
_PRINTED = re.compile(rb"[ -~]+")
_MESSAGES = 64
"""Messages to the person that wait; the oldest go first."""


class OutputFeed:
    """The output of one session. `shells` reads the marks of its shells; None for a program without them."""

    def __init__(
        self, session: Session, offset: int, shells: Shells | None, notes: Notes | None, engine_timeout_s: float
    ) -> None:
        self._session = session
        self.offset = offset
        """How many bytes were parsed so far."""
        self.gaps = Gaps()
        """Output that its terminal was not given, because the engine dies of it; the journal has it."""
        self.set_aside = False
        """Whether nothing more is parsed, because the engine died of this session again and again."""
        self.lost_bytes = 0
        """Output that a restore could not bring back."""
        self._shells = shells
        self._notes = notes
        self._engine_timeout_s = engine_timeout_s
        self._taps: ev.Callbacks[Tap] = ev.Callbacks()
        self.ahead: Callable[[int, bytes], bool] | None = None
        """Hears a few plain characters before they are parsed, the echo of a key; True if they are shown already."""
        self._shown_to = 0
        """Output up to this offset was shown before it was parsed. Nothing more is shown ahead until it is parsed, or it would be shown twice."""
        self._shown_now = False
        """Whether that has just been shown: parsing it can wait a moment."""
        self._risky = False
        child = session.child
        self._handle = buffer_of(child.ring.mmap) if child is not None else None
        self.note = notes.note_of(session.sid, child.ring if child is not None else None) if notes else None
        session.terminal.note = self.note

    def __repr__(self) -> str:
        return f"<OutputFeed of {self._session.name}>"

    def during(self, work: Work, size: int) -> AbstractContextManager[None]:
        """While the engine does that work, the ring says so."""
        return self.note.during(work, self.offset, size) if self.note is not None else nullcontext()

    def release(self) -> None:
        """The child and its ring go; what was printed stays."""
        if self._notes is not None:
            self.note = self._session.terminal.note = self._notes.note_of(self._session.sid, None)
        self.close()

    def close(self) -> None:
        """Let go of the ring. Idempotent."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

    def backlog(self) -> int:
        return self._session.child.ring.head - self.offset if self._session.child is not None else 0

    def pump(self, limit: int) -> int:
        """Parse up to `limit` bytes from the ring. Called by the pump, and by a restore. `LATER` for what is shown already."""
        child = self._session.child
        if child is None or self._session.closed:
            return 0
        ring = child.ring
        start = self.offset
        size = min(ring.head - start, limit)
        if size <= 0:
            return 0
        if start < ring.replied < start + size:
            size = ring.replied - start  # answers up to here were sent by an earlier server
        if start < self._session.heard < start + size:
            size = self._session.heard - start
        self.show_ahead()
        if self._shown_now:
            self._shown_now = False
            if self._shown_to == start + size:
                return LATER
        data = b""
        if self._taps.in_order or self._session.commands is not None or self._is_careful(start):
            data = ring.copy(start, start + size)
        if self._is_risky(ring, data, size):
            data = data or ring.copy(start, start + size)
            self._try_first(start, data)
        note = self.note
        if note is not None:
            note.begin(Work.FEED, start, size)
        try:
            shown, told = self._parse(start, data, size)
        finally:
            if note is not None:
                note.end()
        for tap in self._taps.in_order:
            tap(start, shown)
        self.offset = end = start + size
        ring.consume(size)
        self._answer(ring.replied < end, end)
        self._session.last_activity = time.monotonic()
        self._tell_terminal_events()
        self._session.listeners.tell(ev.Output(start, end))
        for event in told:
            self._session.listeners.tell(event)
        return size

    def show_ahead(self) -> None:
        """Let the viewers see the echo of a key, if that is all that waits to be parsed. Quick; never blocks."""
        child, start = self._session.child, self.offset
        if self.ahead is None or child is None or self._shown_to > start:
            return
        head = child.ring.head
        if 0 < head - start <= _AHEAD_BYTES and not start < max(child.ring.replied, self._session.heard) < head:
            text = child.ring.copy(start, head)
            if _PRINTED.fullmatch(text) and self.ahead(start, text):
                self._shown_to, self._shown_now = head, True

    def _is_risky(self, ring: Ring, data: bytes, size: int) -> bool:
        """Whether the engine is known to die of such output, or of what may follow it."""
        terminal = self._session.terminal
        if self._risky:
            self._risky = terminal.has_margins
        if not self._risky:
            if data:
                self._risky = terminal.is_risky(data)
            elif self._handle is not None:
                for at, length in ring.spans(size):
                    self._risky |= terminal.is_risky_range(self._handle, at, length)
        return self._risky

    def _try_first(self, start: int, data: bytes) -> None:
        """Have a child parse it. Leave out what kills there, so that it does not kill here."""
        terminal, limit_s = self._session.terminal, self._engine_timeout_s
        data = self._without_gaps(start, data)
        if attempt(lambda: terminal.feed(data), limit_s).how != "died":
            return
        again = bool(self.gaps)
        fate = attempt(
            lambda: examine(lambda: terminal, [Fed(start, data)], look_everywhere, BUDGET_S, limit_s, again=again), 60
        )
        findings = fate.answer if fate.lived else Findings()
        for first, last in findings.gaps if findings.whole else [(start, start + len(data))]:
            self.gaps.add(first, last)
        log.warning("session %s: left out what the engine dies of, %d bytes in all", self._session.name, self.gaps.size)
        self._session.memory.remember()

    def _parse(self, start: int, data: bytes, size: int) -> tuple[bytes, list[CommandEvent]]:
        """Feed the terminal. Returns what may be shown of the bytes, and what the marks told."""
        if self._shells is not None:
            shown, told = self._shells.consume(
                start, data, self._without_gaps(start, data), self._session.terminal, live=True
            )
            self._name_authors(told)
            return shown, told
        if self._is_careful(start):
            self._session.terminal.feed(self._without_gaps(start, data))
            return data, []
        assert self._handle is not None and self._session.child is not None
        for position, length in self._session.child.ring.spans(size):
            self._session.terminal.feed_range(self._handle, position, length)
        return data, []

    def _name_authors(self, told: list[CommandEvent]) -> None:
        author, log = self._session.input.line.entered_by, self._session.commands
        if author is None or log is None:
            return
        for event in told:
            command = log.find(event.id) if isinstance(event, ev.CommandStarted) else None
            if (
                command is not None
                and command.author is None
                and log.set_author(command, {"kind": author.kind, "id": author.id})
            ):
                self._session.memory.remember()

    def _without_gaps(self, start: int, data: bytes) -> bytes:
        if self.set_aside:
            self.gaps.add(start, start + len(data))
        return self.gaps.blank(start, data)

    def _is_careful(self, start: int) -> bool:
        """Whether some output from `start` on is to be left out."""
        return self.set_aside or start < self.gaps.end

    def feed_journal(self, data: bytes) -> None:
        """Parse bytes that come from the journal during a restore: their answers were sent long ago."""
        with self.during(Work.FEED, len(data)):
            blanked = self._without_gaps(self.offset, data)
            if self._shells is not None:
                self._shells.consume(self.offset, data, blanked, self._session.terminal, live=False)
            else:
                self._session.terminal.feed(blanked)
        self.offset += len(data)
        self._session.terminal.take_replies()
        self._session.terminal.take_events()

    def skip_lost(self, size: int) -> None:
        """`size` bytes are gone for good; go on behind them."""
        self.offset += size
        self.lost_bytes += size

    def _answer(self, fresh: bool, end: int) -> None:
        replies = self._session.terminal.take_replies()
        child = self._session.child
        if not replies or not fresh or child is None:
            return
        # Marked before it is sent: a successor may leave a query without an answer, but never answers it twice.
        child.ring.set_replied(end)
        try:
            rest = replies[child.write(replies) :]
            if rest:
                self._session.pending.start(child.write_all(rest))
        except InputClosed:
            pass

    def _tell_terminal_events(self) -> None:
        told = [
            event for happened in self._session.terminal.take_events() if (event := _translate(happened)) is not None
        ]
        if self.offset <= self._session.heard:
            told = [event for event in told if not isinstance(event, ev.Notification)]
        messages = self._session.messages
        messages.extend((self.offset, event) for event in told if isinstance(event, ev.Notification))
        del messages[:-_MESSAGES]
        for event in told:
            self._session.listeners.tell(event)

    def tap(self, callback: Tap) -> Callable[[], None]:
        """Hear every byte that is parsed from now on, as (offset, bytes). The returned function ends it."""
        return self._taps.add(callback)

    def read_recent(self, since: int) -> bytes:
        """What is still at hand of the bytes parsed from offset `since` on: from the ring, else from the journal."""
        end = self.offset
        if self._session.child is not None:
            ring = self._session.child.ring
            data = ring.copy(since, end) if since >= ring.oldest and end - since <= ring.size else b""
            if since >= ring.oldest and len(data) == end - since:  # not overwritten while it was copied
                shown = self.gaps.blank(since, data)
                for nonce in self._session.nonces:
                    shown = NonceMask(nonce).hide(shown)
                return shown
        return self._session.journal.read_bytes(since, end)[0]


def _translate(happened: object) -> ev.SessionEvent | None:
    match happened:
        case te.TerminalBell():
            return ev.Bell()
        case te.TerminalTitleChanged(title=title):
            return ev.TitleChanged(title)
        case te.TerminalCwdChanged(cwd=str(cwd)):
            return ev.CwdChanged(cwd)
        case te.ClipboardWrite(data=data):
            return ev.Clipboard(data)
        case te.TerminalNotification(title=title, body=body):
            return ev.Notification(title, body)
        case te.AltScreen(active=active):
            return ev.ScreenModeChanged(active)
    return None
