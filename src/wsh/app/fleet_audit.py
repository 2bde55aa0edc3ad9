"""The audit of this node, copied into the fleet's stream as it grows.

The file on this machine stays the truth. What NATS has confirmed is noted beside it, so that the next server goes on from there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.policy.audit import Audit
from wsh.wire.system.private_file import write_private

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.fleet")

_EVERY_S = 1.0


class AuditCopy:
    """`tell` gets an id and an entry; `confirm` is called with each entry that arrived. No more than `most` are on their way.

    `fleet` tells one fleet from another, whatever their names: what was confirmed by one says nothing of another.
    """

    def __init__(
        self, log_file: Path, note: Path, tell: Callable[[str, JsonObject], None], *, fleet: str, most: int
    ) -> None:
        self._audit = Audit(log_file)
        self._note = note
        self._tell = tell
        self._fleet = fleet
        self._most = most
        self._size = -1
        self._is_behind = False
        self._told = self._confirmed = 0
        self._noted: int | None = None

    def confirm(self, entry: JsonObject) -> None:
        self._confirmed = max(self._confirmed, int(entry["seq"]))

    async def run(self) -> None:
        begun = False
        while True:
            try:
                if not begun:
                    self._noted = await asyncio.to_thread(self._read_note)
                    # The first time in a fleet: what was decided before is not the fleet's affair.
                    first = await asyncio.to_thread(self._find_newest) if self._noted is None else self._noted
                    self._told = self._confirmed = first
                    begun = True
                await self._look()
            except (OSError, ValueError, KeyError) as problem:
                log.warning("the audit could not be copied: %s", problem)
            await asyncio.sleep(_EVERY_S)

    async def _look(self) -> None:
        try:
            size = os.stat(self._audit.path).st_size
        except FileNotFoundError:
            size = 0
        room = self._most - (self._told - self._confirmed)
        if room > 0 and (size != self._size or self._is_behind):
            self._size = size
            new = await asyncio.to_thread(self._read_new)
            # The file keeps the rest, however long NATS is away.
            self._is_behind = len(new) > room
            for entry in new[:room]:
                self._told = entry["seq"]
                self._tell(str(entry["hash"])[:32], entry)
        confirmed = self._confirmed
        if confirmed != self._noted:
            note = {"sequence": confirmed, "fleet": self._fleet}
            await asyncio.to_thread(write_private, self._note, json.dumps(note).encode())
            self._noted = confirmed

    def _read_backwards(self) -> Iterator[JsonObject]:
        return (entry for entry in self._audit.read_backwards() if isinstance(entry.get("seq"), int))

    def _find_newest(self) -> int:
        return next((int(entry["seq"]) for entry in self._read_backwards()), 0)

    def _read_new(self) -> list[JsonObject]:
        """What came since, oldest first."""
        return list(takewhile(lambda entry: int(entry["seq"]) > self._told, self._read_backwards()))[::-1]

    def _read_note(self) -> int | None:
        try:
            note = json.loads(self._note.read_bytes())
            return int(note["sequence"]) if note.get("fleet", self._fleet) == self._fleet else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
