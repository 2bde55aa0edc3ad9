"""Scanner processes, and what each of them has at hand."""

from __future__ import annotations

import asyncio

from tests.support.workspace.tools import Tools
from wsh.wire.system.place import Places
from wsh.workspace.search.filter import Filter
from wsh.workspace.search.scanner import Scanners
from wsh.workspace.transcript.transcript import TranscriptFilter


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
