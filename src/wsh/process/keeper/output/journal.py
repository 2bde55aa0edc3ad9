"""The journal of a stream on disk, written by one thread so that a slow disk never stalls the pump.

The ring itself is the queue: bytes stay there until they are on disk, and the pump frees ring space only up to the
journaled offset. A disk that refuses costs bytes of the journal (counted, and shown as a state), never of the terminal.
Files: `journal.<start, 20 digits>.raw` with the bytes, `journal.<start>.idx` with fixed records (see `layout`).
No fsync: the journal survives the death of any process, not of the machine.
"""

from __future__ import annotations

import _thread
import os
import resource
import time
from struct import Struct

from wsh.process.keeper import layout
from wsh.process.keeper.output.journal_trim import Segment, drop_oldest

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable

    from wsh.process.keeper.output.stream import ChildStream


_record = Struct(layout.RECORD)
_BATCH_S = 0.004
_RETRY_S = 2.0
_OPEN_JOURNALS = 64
_DESCRIPTORS_PER_JOURNAL = 16
"""Of the limit, so that few descriptors serve terminals first; a journal has two of them open."""


class StreamJournal:
    """State of one stream's journal. After `Scribe.add` only the writer thread touches the files."""

    __slots__ = (
        "closed",
        "closing",
        "done",
        "dropped",
        "folder",
        "idx_fd",
        "raw_fd",
        "records",
        "retry_at",
        "segment_bytes",
        "segments",
        "size",
        "source",
        "state",
        "total_bytes",
    )

    def __init__(self, source: ChildStream, folder: bytes, segment_bytes: int, total_bytes: int) -> None:
        self.source = source
        self.folder = folder
        self.segment_bytes = max(1, min(segment_bytes, total_bytes // 4))
        self.total_bytes = total_bytes
        self.state = layout.JOURNAL_OK
        self.done = 0
        self.dropped = 0
        self.records: list[bytes] = []
        self.segments: list[Segment] = []
        self.size = (24, 80)
        self.raw_fd = -1
        self.idx_fd = -1
        self.retry_at = 0.0
        self.closing = False
        self.closed = False

    @property
    def start(self) -> int:
        return self.segments[0].start if self.segments else self.done

    def note(self, offset: int, time_us: int, kind: int, rows: int = 0, cols: int = 0, extra: int = 0) -> None:
        """Remember a record; the writer thread puts it on disk. Called by the pump."""
        self.records.append(_record.pack(offset, time_us, kind, rows, cols, 0, extra))

    def flush(self) -> None:
        """Bring everything up to the stream's head to disk. Raises OSError as the disk does."""
        head = self.source.head
        while self.done < head:
            segment = self._segment()
            at = self.done % self.source.size
            count = min(head - self.done, self.source.size - at, self.segment_bytes - segment.raw_bytes)
            written = os.sendfile(self.raw_fd, self.source.ring_fd, at, count)
            if written == 0:
                raise OSError(28, "nothing could be written")
            segment.raw_bytes += written
            self.done += written
        if self.records:
            self._write_records(self._segment(), 1 << 63)

    def give_up(self) -> None:
        """The disk refused: count what is lost and try again later with a new segment."""
        head = self.source.head
        self.dropped += head - self.done
        self.done = head
        self.skip_records()
        self.close()
        self.state = layout.JOURNAL_FULL
        self.retry_at = time.monotonic() + _RETRY_S

    def skip_records(self) -> None:
        """Records that cannot be written are lost too."""
        self._let_go_of_records(len(self.records))

    def close(self) -> None:
        for fd in (self.raw_fd, self.idx_fd):
            if fd >= 0:
                os.close(fd)
        self.raw_fd = self.idx_fd = -1

    def _segment(self) -> Segment:
        """The segment to append to, its files open."""
        last = self.segments[-1] if self.segments else None
        gap = last is not None and last.start + last.raw_bytes != self.done
        full = last is not None and max(last.raw_bytes, last.idx_bytes) >= self.segment_bytes
        if last is None or gap or full:
            if last is not None and self.idx_fd >= 0:
                self._write_records(last, self.done)
            return self._begin_segment(last)
        if self.raw_fd < 0:
            self._open(last)
        return last

    def _begin_segment(self, last: Segment | None) -> Segment:
        self.close()
        if last is None or last.start != self.done:
            last = Segment(self.done)
            self.segments.append(last)
        else:  # nothing but records since: begin its sidecar anew rather than grow without end
            last.idx_bytes = 0
        self._open(last)
        rows, cols = self._size_at(self.done)
        now_us = time.time_ns() // 1000
        restated = _record.pack(self.done, now_us, layout.KIND_SIZE, rows, cols, layout.RESTATED, 0)
        self._append(last, restated)
        drop_oldest(self.folder, self.segments, self.total_bytes - self.segment_bytes)
        return last

    def _write_records(self, segment: Segment, before: int) -> None:
        """Put the waiting records of offsets below `before` into the sidecar of `segment`."""
        count = 0
        for record in list(self.records):
            if int.from_bytes(record[:8], "little") >= before:
                break
            count += 1
        if count:
            self._append(segment, b"".join(self.records[:count]))
            self._let_go_of_records(count)

    def _append(self, segment: Segment, data: bytes) -> None:
        if os.pwrite(self.idx_fd, data, segment.idx_bytes) < len(data):
            raise OSError(28, "the sidecar could not be written whole")
        segment.idx_bytes += len(data)

    def _let_go_of_records(self, count: int) -> None:
        """Forget the oldest waiting records, but remember the size that they end with."""
        for record in self.records[:count]:
            _, _, kind, rows, cols, _, _ = _record.unpack(record)
            if kind == layout.KIND_SIZE:
                self.size = (rows, cols)
        del self.records[:count]

    def _size_at(self, offset: int) -> tuple[int, int]:
        """The size in force at `offset`, from what is on disk and what waits."""
        size = self.size
        for record in list(self.records):
            at, _, kind, rows, cols, _, _ = _record.unpack(record)
            if kind == layout.KIND_SIZE and at <= offset:
                size = (rows, cols)
        return size

    def _open(self, segment: Segment) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        name = b"%s/journal.%020d." % (self.folder, segment.start)
        self.raw_fd = os.open(name + b"raw", flags, 0o600)
        self.idx_fd = os.open(name + b"idx", flags, 0o600)
        os.lseek(self.raw_fd, segment.raw_bytes, os.SEEK_SET)
        if segment.idx_bytes == 0:
            os.ftruncate(self.idx_fd, 0)


class Scribe:
    """The writer thread. `touch` is called by the pump; `report` is called in the thread after each journal moved."""

    def __init__(self, report: Callable[[StreamJournal], None]) -> None:
        self._report = report
        self._dirty: dict[StreamJournal, None] = {}
        self._open: dict[StreamJournal, None] = {}
        self._wake = _thread.allocate_lock()
        self._wake.acquire()
        self._hurry = _thread.allocate_lock()
        self._hurry.acquire()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        few = limit // _DESCRIPTORS_PER_JOURNAL if limit > 0 else _OPEN_JOURNALS
        self._most_open = max(1, min(_OPEN_JOURNALS, few))
        self._idle = True
        self._stopping = False
        self._stopped = _thread.allocate_lock()
        self._stopped.acquire()

    def start(self) -> None:
        _thread.start_new_thread(self._run, ())

    def touch(self, journal: StreamJournal) -> None:
        """`journal` has something to write. Cheap enough for every read."""
        self._dirty[journal] = None
        if self._idle:
            self._idle = False
            self._wake.release()

    def hurry(self) -> None:
        """A ring is filling up: do not wait to collect more."""
        if self._hurry.locked():
            try:
                self._hurry.release()
            except RuntimeError:
                pass

    def stop(self) -> None:
        """Write what is left and end; returns when the thread is done."""
        self._stopping = True
        self.hurry()
        if self._idle:
            self._idle = False
            self._wake.release()
        self._stopped.acquire(timeout=10)

    def _run(self) -> None:
        try:
            while not (self._stopping and not self._dirty):
                if not self._dirty:
                    self._idle = True
                    # touch() may have come between the two lines above: it then saw _idle False and did not wake us
                    if not self._dirty and not self._stopping:
                        self._wake.acquire()
                    elif self._idle:
                        self._idle = False
                    else:
                        self._wake.acquire()
                    self._hurry.acquire(timeout=_BATCH_S)
                else:
                    self._hurry.acquire(timeout=_BATCH_S)
                for journal in list(self._dirty):
                    del self._dirty[journal]
                    self._serve(journal)
        finally:
            self._stopped.release()

    def _serve(self, journal: StreamJournal) -> None:
        try:
            if journal.state == layout.JOURNAL_FULL and time.monotonic() < journal.retry_at:
                head = journal.source.head
                journal.dropped += head - journal.done
                journal.done = head
                journal.skip_records()
            else:
                journal.flush()
                journal.state = layout.JOURNAL_OK
        except OSError:
            journal.give_up()
        self._remember(journal)
        if journal.closing:
            self._open.pop(journal, None)
            journal.close()
            journal.closed = True
        self._report(journal)

    def _remember(self, journal: StreamJournal) -> None:
        """Keep few files open: the least recently written ones are closed and opened again when needed."""
        self._open.pop(journal, None)
        self._open[journal] = None
        while len(self._open) > self._most_open:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.close()
