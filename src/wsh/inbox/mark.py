"""What the person has put aside: entries that are done, and entries that come back later. One small file, written whole."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Collection
from pathlib import Path

from wsh.wire.system.place import ensure_private, write_private

log = logging.getLogger(__name__)

DONE = -1.0
"""Stands in the file instead of the time at which an entry comes back."""
_MOST = 10_000


class InboxMarks:
    """By the id of an entry. Read when first asked for; a file that cannot be read counts as empty and is said once."""

    def __init__(self, path: Path, keep_s: float) -> None:
        self._path = path
        self._keep_s = keep_s
        self._marks: dict[str, tuple[float, float]] | None = None
        """When it was marked, and until when it is away."""
        self._writing = asyncio.Lock()

    async def load(self) -> None:
        if self._marks is None:
            read = await asyncio.to_thread(self._read)
            self._marks = read if self._marks is None else self._marks

    def is_done(self, id: str) -> bool:
        mark = (self._marks or {}).get(id)
        return mark is not None and mark[1] == DONE

    def snoozed_until(self, id: str, now: float) -> float | None:
        """None if it is not away, or has come back."""
        mark = (self._marks or {}).get(id)
        return mark[1] if mark is not None and mark[1] > now else None

    def list_put_off(self, now: float) -> frozenset[str]:
        """Entries that are away for a time, or have come back since and are kept as what has just ended."""
        marks = (self._marks or {}).items()
        return frozenset(id for id, (_, until) in marks if until != DONE and now - until < self._keep_s)

    async def set(self, id: str, until: float | None, known: Collection[str]) -> None:
        """Mark it: `until` a time, DONE, or None to take the mark away. On disk when this returns.

        Marks of entries that are not `known` any more go when they are older than entries are kept.
        """
        await self.load()
        async with self._writing:
            now = time.time()
            before = self._marks or {}
            marks = {k: m for k, m in before.items() if k in known or now - m[0] < self._keep_s}
            marks.pop(id, None)
            if until is not None:
                marks[id] = (now, until)
            while len(marks) > _MOST:
                del marks[next(iter(marks))]
            await asyncio.to_thread(self._write, marks)
            self._marks = marks

    def _read(self) -> dict[str, tuple[float, float]]:
        try:
            found = json.loads(self._path.read_bytes())
            return {str(key): (float(at), float(until)) for key, (at, until) in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as problem:
            log.warning("what was done in the inbox cannot be read: %s", problem)
            return {}

    def _write(self, marks: dict[str, tuple[float, float]]) -> None:
        ensure_private(self._path.parent)
        write_private(self._path, json.dumps(marks).encode())
