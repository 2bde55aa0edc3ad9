"""How much of what a viewer typed the program was given, noted where the next server finds it.

A viewer keeps what it typed until it is told that this was written. After a lost connection it is told how much came, and sends the rest:
nothing is lost and nothing is typed twice, also when the server dies. Two words of the session's ring hold one receipt each, those of the
two viewers that typed last: the number that the viewer chose, how many bytes were written, and whether a write was under way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsh.process.ring import Ring

ID_BITS = 24
COUNT_BITS = 39
_COUNT_AT = 1
_ID_AT = _COUNT_AT + COUNT_BITS
_COUNTS = (1 << COUNT_BITS) - 1
_REMEMBERED = 64


class Receipt:
    """Bytes of one viewer: `received` here, and `written` to the program. Number 0 is not noted."""

    def __init__(self, id: int = 0, count: int = 0, unsure: bool = False) -> None:
        self.id = id
        self.received = count
        self.written = count
        self.unsure = unsure
        """A server died while it wrote: whether the program has those bytes cannot be known."""
        self.on_written: Callable[[], None] | None = None


class Receipts:
    """All receipts of one session."""

    def __init__(self) -> None:
        self._known: dict[int, Receipt] = {}
        self._newest = 1

    def open(self, ring: Ring | None, id: int, count: int) -> Receipt:
        """The receipt of a viewer that comes again; a new one begins with the `count` that the viewer says.

        What the viewer knows to be written counts also where it was typed without a receipt, as after a cut to another machine.
        """
        found = self._known.pop(id, None)
        if found is None:
            found = self._find(ring, id) if ring is not None else None
            found = found or Receipt(id, count)
        else:
            found.unsure = False
        if count > found.written:
            found.received = found.written = count
        self._known[id] = found
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return found

    def _find(self, ring: Ring, id: int) -> Receipt | None:
        words, base = ring.typed
        for word in words[base : base + 2]:
            if word >> _ID_AT == id:
                return Receipt(id, word >> _COUNT_AT & _COUNTS, bool(word & 1))
        return None

    def note(self, ring: Ring, receipt: Receipt, under_way: bool) -> None:
        """Say how much was written. One store, so that a death leaves either all of it or nothing."""
        if not receipt.id:
            return
        words, base = ring.typed
        place = self._newest
        if words[base + place] >> _ID_AT != receipt.id:
            place = self._newest = 1 - place
        words[base + place] = receipt.id << _ID_AT | (receipt.written & _COUNTS) << _COUNT_AT | under_way

    def add(self, ring: Ring | None, receipt: Receipt, count: int) -> None:
        """So many bytes more need not be sent again. `ring` is None where the program has ended."""
        receipt.written += count
        if ring is not None:
            self.note(ring, receipt, False)
        if count and receipt.on_written is not None:
            receipt.on_written()
