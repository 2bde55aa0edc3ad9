"""Transcripts beside the index: taken in from the journals, made to leave after their days, shown one by one."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path

from wsh.wire.json.object import JsonObject
from wsh.wire.system.shortage import find_shortage
from wsh.workspace.error import NothingThere, ToolCapabilityMissing
from wsh.workspace.search.excerpt import show_transcript
from wsh.workspace.surroundings import TranscriptSource
from wsh.workspace.transcript.transcript import TranscriptStore

log = logging.getLogger(__name__)

_RETIRE_EVERY_S = 3600.0


class TranscriptUpkeep:
    """Without a source there is only what the store holds already."""

    def __init__(self, store: TranscriptStore, folder: Path) -> None:
        self.store = store
        self._folder = folder
        self._source: TranscriptSource | None = None
        self._retiring: asyncio.Task[None] | None = None

    def use(self, source: TranscriptSource) -> None:
        """From now on those past their days leave by themselves, whether or not anybody builds or searches."""
        self._source = source
        if self._retiring is None:
            self._retiring = asyncio.ensure_future(self._retire())

    async def aclose(self) -> None:
        if self._retiring is not None:
            self._retiring.cancel()
            await asyncio.gather(self._retiring, return_exceptions=True)
        self.store.close()

    async def _retire(self) -> None:
        while True:
            try:
                if self.store.exists():
                    await asyncio.to_thread(self.store.expire)
            except (OSError, sqlite3.Error) as problem:
                shortage = find_shortage(problem, self._folder)
                if shortage is None:
                    log.exception("old transcripts could not be removed")
                else:
                    log.warning("old transcripts could not be removed: %s", shortage.message)
            await asyncio.sleep(_RETIRE_EVERY_S)

    @property
    def possible(self) -> bool:
        """Whether there can be any: not where output is not journaled."""
        return self._source is None or self._source.enabled

    def check(self) -> None:
        """Raises CapabilityMissing where there can be none."""
        if not self.possible:
            raise ToolCapabilityMissing(
                "Transcripts cannot be searched: journaling is off.",
                hint="Set journal.enabled to true and restart the server.",
            )

    async def build(self, full: bool) -> JsonObject:
        expired = await asyncio.to_thread(self.store.expire)
        if self._source is not None:
            await (self._source.replay() if full else self._source.refresh())
        return {"expired": expired, **await asyncio.to_thread(self.store.status)}

    async def refresh(self, patience_s: float) -> str | None:
        """Take in what is new. Where the disk has no room for it, or it takes longer, what is there can still be read: why it is not all."""
        if self._source is not None and self._source.enabled:
            try:
                async with asyncio.timeout(patience_s):
                    await self._source.refresh()
            except TimeoutError:
                return "there is so much of it that it is still being taken in."
            except (OSError, sqlite3.Error) as problem:
                shortage = find_shortage(problem, self._folder)
                if shortage is None:
                    raise
                return shortage.message
        return None

    def describe(self) -> JsonObject | None:
        """None where there are none, because the disk has no room to begin them."""
        try:
            return self.store.status()
        except (OSError, sqlite3.Error) as problem:
            if find_shortage(problem, self._folder) is None:
                raise
            return None

    def show(
        self, root: str, id: str, uid: int, start_line: int | None, end_line: int | None, max_bytes: int
    ) -> JsonObject:
        found = self.store.find_by_uid(uid)
        if found is None:
            raise NothingThere(f"There is no transcript {id}.", hint="It may have expired; search again.", id=id)
        facts, text = found
        return show_transcript(root, id, facts, text, start_line or 1, end_line, max_bytes)
