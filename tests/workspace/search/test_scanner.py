"""Scanner processes, and what each of them has at hand."""

from __future__ import annotations

import asyncio
import subprocess
import time

import pytest

from tests.support.waiting import HANG_S
from tests.support.warm import WarmPopen
from tests.support.workspace.tools import Tools
from wsh.wire.system.place import Places
from wsh.workspace.search.filter import Filter
from wsh.workspace.search.scanner import Scanners
from wsh.workspace.transcript.transcript import Transcript, TranscriptFilter, TranscriptStore


def test_a_scanner_gets_the_part_of_the_files_that_it_has_at_hand(indexed: Tools, places: Places) -> None:
    (path,) = (places.state / "index").glob("*/index-*.db")

    async def parts(scanners: Scanners) -> dict[int, int | None]:
        found = await scanners.scan_files(str(path), "regex", r"\w{3}", None, Filter(), 60)
        assert found.files
        return {scanner.process.pid: scanner.part for scanner in scanners._idle}

    async def search() -> None:
        scanners = Scanners()
        try:
            first = await parts(scanners)
            assert sorted(first.values(), key=str) == [0, 1]
            for _ in range(2):
                scanners._idle.reverse()  # the order in which they are done is left to chance
                transcripts = str(places.state / "index" / "transcripts.db")
                await scanners.scan_transcripts(transcripts, "regex", "x", None, TranscriptFilter(), 60)
                assert await parts(scanners) == first
        finally:
            await scanners.aclose()

    asyncio.run(search())


def test_a_scanner_reads_the_store_of_transcripts_that_took_the_place_of_a_damaged_one(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", WarmPopen)
    store = TranscriptStore(places.index / "transcripts.db", 30)

    def put(word: str) -> None:
        store.put([Transcript(word, "s", "make", word, "/", time.time(), 0, 1)])

    async def find(scanners: Scanners, word: str) -> int:
        found = await scanners.scan_transcripts(str(store.path), "literal", word, None, TranscriptFilter(), HANG_S)
        return len(found)

    async def search() -> None:
        scanners = Scanners(1)
        try:
            put("bettong")
            assert await find(scanners, "bettong") == 1
            (scanner,) = scanners._idle
            store.give_up("as a scanner says of a damaged one")
            put("numbat")
            assert (await find(scanners, "bettong"), await find(scanners, "numbat")) == (0, 1)
            put("bilby")
            assert await find(scanners, "bilby") == 1
            assert scanners._idle == [scanner]
        finally:
            await scanners.aclose()

    try:
        asyncio.run(search())
        assert store.status()["documents"] == 2
    finally:
        store.close()
