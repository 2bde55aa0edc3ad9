"""The server's view of the counters and rings that the keeper fills. No copying, no system call per byte."""

from __future__ import annotations

import mmap
import os
import threading
from typing import Literal

from wsh.process.keeper import layout

JournalState = Literal["off", "ok", "full"]
_STATES: tuple[JournalState, JournalState, JournalState] = ("off", "ok", "full")

_barrier = threading.Lock()


def fence() -> None:
    """Order what we stored before against what we load after."""
    with _barrier:
        pass


class Board:
    """The control memfd of this connection: counters of every slot, and both bells."""

    def __init__(self, fd: int, bell_in: int, bell_out: int) -> None:
        self.map = mmap.mmap(fd, layout.CONTROL_BYTES)
        os.close(fd)
        self._view = memoryview(self.map)
        self.words = self._view[layout.WORDS_AT :].cast("Q")
        self.bell_in = bell_in
        self.bell_out = bell_out

    def take_dirty(self, slots: int) -> list[int]:
        """Slots below `slots` that have news. Call when `bell_in` is readable, then read the counters."""
        try:
            os.eventfd_read(self.bell_in)
        except BlockingIOError:
            pass
        shared = self.map
        shared[layout.TO_SERVER_RUNG] = 0
        fence()
        found = []
        end = layout.TO_SERVER_MAP + slots
        at = shared.find(b"\x01", layout.TO_SERVER_MAP, end)
        while at >= 0:
            shared[at] = 0
            found.append(at - layout.TO_SERVER_MAP)
            at = shared.find(b"\x01", at + 1, end)
        fence()
        return found

    def ring_keeper(self, slot: int) -> None:
        shared = self.map
        shared[layout.TO_KEEPER_MAP + slot] = 1
        if layout.ORDERED:
            fence()
            if shared[layout.TO_KEEPER_RUNG]:
                return
            shared[layout.TO_KEEPER_RUNG] = 1
        os.eventfd_write(self.bell_out, 1)

    def close(self) -> None:
        self.words.release()
        self._view.release()
        self.map.close()
        os.close(self.bell_in)
        os.close(self.bell_out)


class Ring:
    """Output of one stream. Offsets are absolute: the number of bytes printed before.

    What lies in [`tail`, `head`) is ours to read; the keeper never writes there. `consume` frees it.
    """

    __slots__ = ("_base", "_board", "_words", "mmap", "size", "slot")

    def __init__(self, board: Board, slot: int, fd: int) -> None:
        """Takes over `fd`."""
        self._board = board
        self._words = board.words
        self._base = slot * layout.WORDS_PER_SLOT
        self.slot = slot
        self.size = self._words[self._base + layout.RING_BYTES]
        self.mmap = mmap.mmap(fd, self.size + layout.META_BYTES)
        os.close(fd)

    @property
    def head(self) -> int:
        return self._words[self._base + layout.HEAD]

    @property
    def tail(self) -> int:
        return self._words[self._base + layout.TAIL]

    @property
    def replied(self) -> int:
        """Queries before this offset have been answered, by us or by a server before us."""
        return self._words[self._base + layout.REPLIED]

    @property
    def oldest(self) -> int:
        """The oldest offset whose byte is in the ring now. Below `tail` it may be overwritten at any time."""
        words, base = self._words, self._base
        return max(words[base + layout.RING_OLDEST], words[base + layout.HEAD] - self.size)

    @property
    def eof(self) -> bool:
        """Nothing will come after `head`."""
        return bool(self._words[self._base + layout.FLAGS] & layout.FLAG_EOF)

    @property
    def paused(self) -> bool:
        """The keeper has stopped reading because the ring is full: the child blocks when it prints."""
        return bool(self._words[self._base + layout.FLAGS] & layout.FLAG_PAUSED)

    @property
    def journaled(self) -> int:
        """Bytes before this offset are on disk (or counted in `journal_dropped`)."""
        return self._words[self._base + layout.JOURNALED]

    @property
    def journal_state(self) -> JournalState:
        return _STATES[self._words[self._base + layout.JOURNAL_STATE]]

    @property
    def journal_start(self) -> int:
        """The oldest offset still on disk."""
        return self._words[self._base + layout.JOURNAL_START]

    @property
    def journal_dropped(self) -> int:
        """Bytes that never reached the disk because it refused."""
        return self._words[self._base + layout.JOURNAL_DROPPED]

    @property
    def note(self) -> tuple[memoryview, int]:
        """Words, and which of them begins a pair that a successor of this server finds as we left it when we died."""
        return self._words, self._base + layout.NOTE

    @property
    def typed(self) -> tuple[memoryview, int]:
        """Words, and which of them begins the pair that says what viewers typed."""
        return self._words, self._base + layout.TYPED

    def readable(self) -> int:
        return self.head - self.tail

    def spans(self, limit: int | None = None) -> list[tuple[int, int]]:
        """Where the unread bytes lie in `mmap`, as (start, length): none, one, or two where the ring wraps."""
        tail = self.tail
        count = self.head - tail
        if limit is not None and count > limit:
            count = limit
        if count <= 0:
            return []
        at = tail % self.size
        first = self.size - at
        if count <= first:
            return [(at, count)]
        return [(at, first), (0, count - first)]

    def peek(self, limit: int | None = None) -> bytes:
        """A copy of the unread bytes."""
        return b"".join(self.mmap[at : at + count] for at, count in self.spans(limit))

    def copy(self, start: int, end: int) -> bytes:
        """A copy of [start, end), which must lie between `oldest` and `head` and not be below `tail`."""
        size = self.size
        at, count = start % size, end - start
        first = min(count, size - at)
        return self.mmap[at : at + first] + self.mmap[: count - first]

    def consume(self, count: int) -> None:
        """Done with `count` bytes: give their room back, and wake the keeper if it waits for room."""
        words, base = self._words, self._base
        tail = words[base + layout.TAIL] + count
        words[base + layout.TAIL] = tail
        fence()
        if words[base + layout.FLAGS] & layout.FLAG_PAUSED and words[base + layout.HEAD] - tail <= self.size >> 1:
            self._board.ring_keeper(self.slot)

    def seek(self, offset: int) -> bool:
        """Read on from `offset` (after a take-over). False if the ring no longer has that byte; then nothing moved."""
        words, base = self._words, self._base
        before = words[base + layout.TAIL]
        if not self.oldest <= offset <= self.head:
            return False
        words[base + layout.TAIL] = offset
        fence()
        if self.oldest > offset:
            words[base + layout.TAIL] = before
            return False
        if offset > before:
            self.consume(0)
        return True

    def set_replied(self, offset: int) -> None:
        """Say that queries before `offset` are answered. Store this *before* writing the answer."""
        self._words[self._base + layout.REPLIED] = offset

    def read_meta(self) -> bytes:
        count = int.from_bytes(self.mmap[self.size : self.size + 8], "little")
        return self.mmap[self.size + 8 : self.size + 8 + count]

    @property
    def closed(self) -> bool:
        return self.mmap.closed

    def close(self) -> None:
        try:
            self.mmap.close()
        except BufferError:
            pass  # somebody still holds a view; the mapping goes with it
