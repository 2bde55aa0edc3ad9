"""The audit of this node, copied into the fleet's stream as it grows.

The file on this machine stays the truth. What NATS has confirmed is noted beside it, so that the next server goes on from there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable
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
    """`tell` gets an id and an entry; `confirm` is called with each entry that arrived."""

    def __init__(self, log_file: Path, note: Path, tell: Callable[[str, JsonObject], None]) -> None:
        self._audit = Audit(log_file)
        self._note = note
        self._tell = tell
        self._size = -1
        self._told = self._confirmed = self._noted = 0

    def confirm(self, entry: JsonObject) -> None:
        self._confirmed = max(self._confirmed, int(entry["seq"]))

    async def run(self) -> None:
        known = await asyncio.to_thread(self._read_note)
        if known is None:
            # The first time in a fleet: what was decided before is not the fleet's affair.
            newest = await asyncio.to_thread(self._audit.read, 1)
            known = int(newest[-1]["seq"]) if newest else 0
        self._told = self._confirmed = known
        while True:
            try:
                await self._look()
            except (OSError, ValueError, KeyError) as problem:
                log.warning("the audit could not be copied: %s", problem)
            await asyncio.sleep(_EVERY_S)

    async def _look(self) -> None:
        try:
            size = os.stat(self._audit.path).st_size
        except FileNotFoundError:
            size = 0
        if size != self._size:
            self._size = size
            for entry in await asyncio.to_thread(self._read_new):
                self._told = int(entry["seq"])
                self._tell(str(entry["hash"])[:32], entry)
        if self._confirmed != self._noted:
            self._noted = self._confirmed
            await asyncio.to_thread(write_private, self._note, json.dumps({"sequence": self._noted}).encode())

    def _read_new(self) -> list[JsonObject]:
        """What came since, oldest first."""
        return list(takewhile(lambda entry: int(entry["seq"]) > self._told, self._audit.read_backwards()))[::-1]

    def _read_note(self) -> int | None:
        try:
            return int(json.loads(self._note.read_bytes())["sequence"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
