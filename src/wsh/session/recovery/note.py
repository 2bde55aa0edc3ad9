"""Where a server leaves word of what its terminal engine is at, so that a successor knows if the engine killed it.

The word of a live session lies in its ring's counters, memory that the keeper holds. Sessions without a ring (those
that have ended) share one page of a file in the runtime folder. Two stores before and one after: no system call.
"""

from __future__ import annotations

import mmap
import os
import struct
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.process.ring import Ring
from wsh.session.recovery.watchdog import Watchdog
from wsh.terminal.engine.note import Work

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAGE_BYTES = 4096
_LABEL_AT = 64
_LABEL = struct.Struct("<64s")
_WORKS = frozenset(Work)


@dataclass(frozen=True)
class FoundNote:
    """What a dead server was at: `work`, on `size` bytes from offset `at`."""

    work: Work
    at: int
    size: int


def size_word(rows: int, cols: int) -> int:
    """A size as the `size` of a note about a resize."""
    return rows << 16 | cols


def size_of(word: int) -> tuple[int, int]:
    return word >> 16, word & 0xFFFF


class EngineNote:
    """The note of one session, given to its terminal. Work within work belongs to the outer one."""

    __slots__ = ("_busy", "_index", "_watchdog", "_words")

    def __init__(self, words: memoryview, index: int, watchdog: Watchdog | None = None) -> None:
        self._words = words
        self._index = index
        self._watchdog = watchdog
        self._busy = False

    def begin(self, work: Work, at: int = 0, size: int = 0) -> bool:
        if self._busy:
            return False
        self._busy = True
        words, index = self._words, self._index
        words[index + 1] = at
        words[index] = work | size << 8
        if self._watchdog is not None:
            self._watchdog.begin()
        return True

    def end(self) -> None:
        self._words[self._index] = 0
        self._busy = False
        if self._watchdog is not None:
            self._watchdog.busy = False

    @contextmanager
    def during(self, work: Work, at: int = 0, size: int = 0) -> Iterator[None]:
        mine = self.begin(work, at, size)
        try:
            yield
        finally:
            if mine:
                self.end()


def find_note(words: memoryview, index: int) -> FoundNote | None:
    """What is noted there, if anything."""
    word = int(words[index])
    if word & 0xFF not in _WORKS:
        return None
    return FoundNote(Work(word & 0xFF), int(words[index + 1]), word >> 8)


class Notes:
    """All notes of one server. Sessions that have no ring share a page, as one at a time can be at work."""

    def __init__(self, path: Path, watchdog: Watchdog | None = None) -> None:
        self._path = path
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(fd, _PAGE_BYTES)
            self.page = mmap.mmap(fd, _PAGE_BYTES)
        finally:
            os.close(fd)
        self.words = memoryview(self.page).cast("Q")
        self.watchdog = watchdog

    def find(self, sid: str, ring: Ring | None) -> FoundNote | None:
        """What a server before us was at with this session when it died."""
        if ring is not None:
            return find_note(*ring.note)
        label = _LABEL.unpack_from(self.page, _LABEL_AT)[0].rstrip(b"\0")
        return find_note(self.words, 0) if label == sid.encode() else None

    def note_of(self, sid: str, ring: Ring | None) -> EngineNote:
        if ring is not None:
            return EngineNote(*ring.note, self.watchdog)
        return PageNote(self, sid)

    def close(self) -> None:
        """Nothing is at work any more, so there is nothing to find."""
        if self.watchdog is not None:
            self.watchdog.close()
        self.words.release()
        self.page.close()
        self._path.unlink(missing_ok=True)


class PageNote(EngineNote):
    """A session's note on the common page: it says whose it is each time."""

    __slots__ = ("_label", "_page")

    def __init__(self, notes: Notes, sid: str) -> None:
        super().__init__(notes.words, 0, notes.watchdog)
        self._page = notes.page
        self._label = _LABEL.pack(sid.encode()[:64])

    def begin(self, work: Work, at: int = 0, size: int = 0) -> bool:
        if not self._busy:
            self._page[_LABEL_AT : _LABEL_AT + _LABEL.size] = self._label
        return super().begin(work, at, size)
