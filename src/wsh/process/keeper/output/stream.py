"""Output streams: a descriptor that is read, a ring it is read into, and when to pause.

A stream belongs to one child: a terminal has one, a child on pipes has two. What is read goes to a buffer shared by
all streams and from there into the stream's memfd: the keeper maps no ring, so a thousand of them cost it no memory.
"""

from __future__ import annotations

import os
import time
from functools import partial

from wsh.process.keeper import layout
from wsh.process.keeper.control import Control, fence
from wsh.process.keeper.loop import Loop
from wsh.process.keeper.output.journal import Scribe, StreamJournal
from wsh.process.keeper.output.slim import WORTH_BYTES, Slimmer

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable

    from wsh.process.keeper.child import Child

_BUFFER_BYTES = 64 * 1024
_LEAST_ROOM = 4096  # a terminal gives at most 4095 bytes a read; less room than that is "full"
_READS_PER_TURN = 16
_CROWD = 4  # so many ready at once, and each gets a smaller share of the turn
_READS_IN_A_CROWD = 4
_RECORD_EVERY_US = 10_000
_REOPEN_POLL_S = 0.05
_DRAIN_LIMIT = 256 * 1024  # more than a terminal or pipe can hold of what a dead leader wrote


class ChildStream:
    __slots__ = (
        "base",
        "child",
        "closed_by_others",
        "drained",
        "eof",
        "fd",
        "head",
        "head_at_death",
        "journal",
        "noted_us",
        "paused",
        "removed",
        "ring_fd",
        "size",
        "slim_at",
        "slot",
    )

    def __init__(self, child: Child, slot: int, size: int) -> None:
        self.child = child
        self.slot = slot
        self.base = slot * layout.WORDS_PER_SLOT
        self.fd = -1
        self.size = size
        self.head = 0
        self.head_at_death = -1
        self.paused = False
        self.eof = False
        self.drained = False
        self.closed_by_others = False
        self.journal: StreamJournal | None = None
        self.noted_us = 0
        self.slim_at = 0
        self.removed: Callable[[], None] | None = None
        self.ring_fd = os.memfd_create("wsh-ring", os.MFD_CLOEXEC)
        os.ftruncate(self.ring_fd, size + layout.META_BYTES)


class StreamPump:
    """Reads all streams. `attached` says whether a server consumes; see `room` for what that changes."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.control = Control()
        self.attached = False
        self.slots: list[ChildStream | None] = []
        self._free_slots: list[int] = []
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._bell_in = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._written: dict[ChildStream, None] = {}
        self.slimmer = Slimmer(self)
        self.scribe = Scribe(self._journal_moved)
        loop.watch(self._bell_in, self._after_journal)

    # streams

    def make(self, child: Child, size: int) -> ChildStream:
        """A stream with its ring and its slot; `add` gives it something to read."""
        if not self._free_slots:
            if len(self.slots) >= layout.MAX_SLOTS:
                raise OSError(24, "no slot is free")
            self.slots.append(None)
            self._free_slots.append(len(self.slots) - 1)
        stream = ChildStream(child, self._free_slots[-1], size)
        self._free_slots.pop()
        self.slots[stream.slot] = stream
        words, base = self.control.words, stream.base
        words[base : base + layout.WORDS_PER_SLOT] = memoryview(bytes(layout.WORDS_PER_SLOT * 8)).cast("Q")
        words[base + layout.RING_BYTES] = size
        words[base + layout.CHILD_ID] = child.id
        return stream

    def unmake(self, stream: ChildStream) -> None:
        os.close(stream.ring_fd)
        self.slots[stream.slot] = None
        self._free_slots.append(stream.slot)

    def add(self, stream: ChildStream, fd: int) -> None:
        """Begin to read `fd` into `stream`."""
        stream.fd = fd
        self._show_journal(stream)
        self.loop.watch(fd, partial(self.pump, stream))

    def remove(self, stream: ChildStream, done: Callable[[], None]) -> None:
        """Forget `stream` and close what it has; `done` is called when its journal is closed too.

        A pipe that somebody still writes to is read into nothing: closing it would kill that process.
        """
        if stream.fd >= 0 and not stream.child.is_terminal and stream.child.ready:
            self.loop.watch(stream.fd, partial(self._discard, stream.fd))
            stream.fd = -1
        self.close_source(stream)
        self.slimmer.forget(stream)
        if stream.journal is None:
            self.unmake(stream)
            done()
            return
        stream.removed = done  # the journal's thread has the last word, see _after_journal
        if not stream.child.ready:
            stream.journal.records.clear()  # a program that never ran leaves no file behind
        stream.journal.closing = True
        self.scribe.touch(stream.journal)

    def _discard(self, fd: int, events: int) -> None:
        try:
            if os.readv(fd, [self._buffer]):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.loop.unwatch(fd)
        os.close(fd)

    def close_source(self, stream: ChildStream) -> None:
        if stream.fd >= 0:
            self.loop.unwatch(stream.fd)
            os.close(stream.fd)
            stream.fd = -1

    # servers come and go

    def attach(self) -> None:
        """A new server: give it counters of its own, so that the old one cannot disturb."""
        old, new = self.control, Control()
        new.copy_from(old, len(self.slots))
        self.loop.unwatch(old.to_keeper)
        self.control = new
        for stream in self.slots:
            if stream is not None:
                self._show_journal(stream)
                new.map[layout.TO_SERVER_MAP + stream.slot] = 1
        old.close()
        self.attached = True
        self.loop.watch(new.to_keeper, self._server_rang)

    def detach(self) -> None:
        self.attached = False
        for stream in self.slots:
            if stream is not None and stream.paused:
                self._resume(stream)

    # reading

    def room(self, stream: ChildStream) -> int:
        """Bytes that may be read now.

        With a server: what it has consumed *and* the journal has. Without one: what the journal has, since a new server
        restores from there, so a child runs on while nobody looks. Without a journal the ring is all there is, and the
        child waits for a server when it is full.
        """
        journal = stream.journal
        floor = stream.head
        if journal is not None:
            floor = journal.done
        if self.attached or journal is None or journal.state != layout.JOURNAL_OK:
            floor = min(floor, self.control.words[stream.base + layout.TAIL])
        return stream.size - (stream.head - floor)

    def pump(self, stream: ChildStream, events: int = 0) -> None:
        """Read what is there, within a turn's share; then publish, journal, and see whether the child has ended."""
        room = self.room(stream)
        if room < _LEAST_ROOM:
            if not self._pause(stream):
                return
            room = self.room(stream)
        buffer, fd = self._buffer, stream.fd
        limit = min(room, _BUFFER_BYTES)
        dying = stream.child.status is not None
        total = 0
        drained = False
        for _ in range(_READS_PER_TURN if self.loop.ready < _CROWD else _READS_IN_A_CROWD):
            try:
                count = os.readv(fd, [buffer[total:limit]])
            except BlockingIOError:
                drained = True
                break
            except OSError:  # EIO: nobody has the terminal open
                count = 0
            if count == 0:
                self._publish(stream, total)
                self._end(stream)
                return
            total += count
            if (count < 2048 and not dying) or limit - total < _LEAST_ROOM:
                break
        self._publish(stream, total)
        if not dying or stream.drained:
            return
        if drained or stream.head - stream.head_at_death > _DRAIN_LIMIT:
            stream.drained = True
            stream.child.settle()
        else:  # its share of the turn is used up; if nothing is left, no event would come
            self.loop.after(0, partial(self._look_again, stream))

    def _look_again(self, stream: ChildStream) -> None:
        if stream.fd >= 0 and not (stream.paused or stream.drained or stream.closed_by_others):
            self.pump(stream)

    def drain(self, stream: ChildStream) -> None:
        """The leader is dead: read what it left. Calls `settle` of the child when that is done."""
        stream.head_at_death = stream.head
        if stream.eof or stream.fd < 0:
            stream.drained = True
        elif not stream.paused:
            self.pump(stream)

    def _publish(self, stream: ChildStream, count: int) -> None:
        if not count:
            return
        at = stream.head % stream.size
        first = min(count, stream.size - at)
        os.pwrite(stream.ring_fd, self._buffer[:first], at)
        if first < count:
            os.pwrite(stream.ring_fd, self._buffer[first:count], 0)
        before = stream.head
        stream.head = before + count
        now_us = time.time_ns() // 1000
        words, base = self.control.words, stream.base
        words[base + layout.LAST_OUTPUT_US] = now_us
        words[base] = stream.head
        if self.attached:
            self.control.ring_server(stream.slot)
        journal = stream.journal
        if journal is not None:
            if not 0 <= now_us - stream.noted_us < _RECORD_EVERY_US:  # the clock may have been set back
                stream.noted_us = now_us
                journal.note(before, now_us, layout.KIND_OUTPUT)
            self.scribe.touch(journal)
            if stream.head - stream.slim_at >= WORTH_BYTES:
                self.slimmer.note(stream)
            if stream.head - journal.done > stream.size // 2:
                self.scribe.hurry()

    def _end(self, stream: ChildStream) -> None:
        """The source gave end of file, or the terminal has no program on it just now."""
        child = stream.child
        if child.is_terminal and child.status is None:
            # a program may close the terminal and open it again as /dev/tty; only its death makes this final
            self.loop.unwatch(stream.fd)
            stream.closed_by_others = True
            self.loop.after(_REOPEN_POLL_S, lambda: self._reopen(stream))
            return
        self.close_source(stream)
        stream.eof = True
        stream.drained = True
        self._set_flags(stream)
        if self.attached:
            self.control.ring_server(stream.slot)
        child.settle()

    def _reopen(self, stream: ChildStream) -> None:
        if stream.fd >= 0 and stream.closed_by_others:
            stream.closed_by_others = False
            if not stream.paused:
                self.loop.watch(stream.fd, partial(self.pump, stream))

    # pausing

    def _pause(self, stream: ChildStream) -> bool:
        """Stop reading a full stream. True if room appeared meanwhile and reading goes on."""
        stream.paused = True
        self._set_flags(stream)
        fence()
        if self.room(stream) >= _LEAST_ROOM:
            stream.paused = False
            self._set_flags(stream)
            return True
        self.loop.unwatch(stream.fd)
        if stream.journal is not None:
            self.scribe.touch(stream.journal)
            self.scribe.hurry()
        return False

    def _resume(self, stream: ChildStream) -> None:
        if not stream.paused or stream.fd < 0 or self.room(stream) < stream.size // 4:
            return
        stream.paused = False
        self._set_flags(stream)
        if not stream.closed_by_others:
            self.loop.watch(stream.fd, partial(self.pump, stream))
        if stream.child.status is not None and not stream.drained:
            self.pump(stream)  # it may be empty by now, and then no event would come

    def _server_rang(self, events: int) -> None:
        for slot in self.control.take_dirty(len(self.slots)):
            stream = self.slots[slot]
            if stream is not None:
                self._resume(stream)

    def _set_flags(self, stream: ChildStream) -> None:
        flags = (layout.FLAG_EOF if stream.eof else 0) | (layout.FLAG_PAUSED if stream.paused else 0)
        self.control.words[stream.base + layout.FLAGS] = flags

    # the journal's thread

    def _journal_moved(self, journal: StreamJournal) -> None:
        """Called in the writer thread, under the interpreter's lock between any two lines of ours."""
        stream = journal.source
        if not journal.closing:
            self._show_journal(stream)
        if journal.closing or stream.paused:
            self._written[stream] = None
            os.eventfd_write(self._bell_in, 1)

    def _after_journal(self, events: int) -> None:
        os.eventfd_read(self._bell_in)
        for stream in list(self._written):
            del self._written[stream]
            if stream.journal is not None and stream.journal.closed:
                # The thread may ring again for a journal that was closed and retired meanwhile.
                if self.slots[stream.slot] is stream:
                    self.unmake(stream)
                    if stream.removed is not None:
                        stream.removed()
            else:
                self._resume(stream)

    def _show_journal(self, stream: ChildStream) -> None:
        journal = stream.journal
        if journal is None:
            return
        words, base = self.control.words, stream.base
        words[base + layout.JOURNALED] = journal.done
        words[base + layout.JOURNAL_START] = journal.start
        words[base + layout.JOURNAL_DROPPED] = journal.dropped
        words[base + layout.JOURNAL_STATE] = journal.state
