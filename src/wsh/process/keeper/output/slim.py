"""Rings give their memory back.

A ring that went round once has all its pages. Every two seconds those in which everything is consumed and on disk give
theirs back to the system: a thousand sessions cost what they print now, not what they ever printed. Without a working journal the ring is the only copy, and is left alone.
"""

from __future__ import annotations

from wsh.process.keeper import layout, libc
from wsh.process.keeper.control import fence

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from wsh.process.keeper.output.stream import ChildStream, StreamPump

WORTH_BYTES = 64 * 1024
_SWEEP_S = 2.0


class Slimmer:
    def __init__(self, pump: StreamPump) -> None:
        self._pump = pump
        self._fat: dict[ChildStream, None] = {}

    def note(self, stream: ChildStream) -> None:
        """`stream` has filled pages since it was last slim."""
        if not self._fat:
            self._pump.loop.after(_SWEEP_S, self._sweep)
        self._fat[stream] = None

    def forget(self, stream: ChildStream) -> None:
        self._fat.pop(stream, None)

    def _sweep(self) -> None:
        for stream in list(self._fat):
            if self._slim(stream):
                del self._fat[stream]
        if self._fat:
            self._pump.loop.after(_SWEEP_S, self._sweep)

    def _slim(self, stream: ChildStream) -> bool:
        journal, words = stream.journal, self._pump.control.words
        if journal is None or journal.state != layout.JOURNAL_OK or journal.done != stream.head:
            return False
        before = words[stream.base + layout.RING_OLDEST]
        words[stream.base + layout.RING_OLDEST] = stream.head
        fence()  # a server that seeks back stores its tail first and then looks at what we just stored
        if self._pump.attached and words[stream.base + layout.TAIL] != stream.head:
            words[stream.base + layout.RING_OLDEST] = before
            return False
        stream.slim_at = stream.head
        return libc.give_back(stream.ring_fd, 0, stream.size)
