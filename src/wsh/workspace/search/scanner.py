"""Literals and patterns with a deadline: a few scanner processes, kept between searches, killed when one is late."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable
from dataclasses import asdict, dataclass
from typing import TypeVar

from wsh.wire.json.object import JsonObject
from wsh.wire.system.task_set import TaskSet
from wsh.workspace.child import kill_group, python_module
from wsh.workspace.error import IndexBroken, ToolError
from wsh.workspace.search.filter import Filter
from wsh.workspace.search.linear import Span
from wsh.workspace.search.scan import FileMatch, ScanResult
from wsh.workspace.transcript.transcript import TranscriptFilter

T = TypeVar("T")


@dataclass
class _Scanner:
    """`part` is the last part of the files that it looked at; the texts of that it has at hand."""

    process: asyncio.subprocess.Process
    part: int | None = None


SCANNERS = 2
_IDLE_S = 60.0
_LIMIT = 256 * 1024 * 1024


class Scanners:
    """Starts scanners when they are needed. Cancelling a scan, or its deadline, kills the process that ran it."""

    def __init__(self, count: int = SCANNERS) -> None:
        self._count = count
        self._slots = asyncio.Semaphore(count)
        self._idle: list[_Scanner] = []
        self._reaper: asyncio.TimerHandle | None = None
        self._tasks = TaskSet()

    async def aclose(self) -> None:
        if self._reaper is not None:
            self._reaper.cancel()
        idle, self._idle = self._idle, []
        for scanner in idle:
            await kill_group(scanner.process)
        await self._tasks.wait()

    async def scan_files(
        self, path: str, match: str, query: str, fts: str | None, narrowing: Filter, seconds: float
    ) -> ScanResult:
        """All scanners share the work of a pattern. Raises TimeoutError when late."""
        parts = 1 if match == "literal" else self._count
        base = {"kind": "files", "path": path, "match": match, "query": query, "fts": fts, "filter": asdict(narrowing)}
        async with asyncio.timeout(seconds):
            replies = await _all(self._ask(base | {"seconds": seconds, "part": [n, parts]}, n) for n in range(parts))
        total = ScanResult()
        for reply in replies:
            total.files += [FileMatch(*match) for match in reply["files"]]
            total.candidates += reply["candidates"]
            total.complete = total.complete and reply["complete"]
        return total

    async def scan_transcripts(
        self, path: str, match: str, query: str, fts: str | None, narrowing: TranscriptFilter, seconds: float
    ) -> list[tuple[int, int, list[Span]]]:
        request = {"kind": "transcripts", "path": path, "match": match, "query": query, "fts": fts}
        async with asyncio.timeout(seconds):
            reply = await self._ask(request | {"filter": asdict(narrowing), "seconds": seconds})
        return [(row, count, [(s, e) for s, e in spans]) for row, count, spans in reply["transcripts"]]

    async def _ask(self, request: JsonObject, part: int | None = None) -> JsonObject:
        async with self._slots:
            scanner = await self._take(part)
            process = scanner.process
            finished = False
            try:
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(json.dumps(request).encode() + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
                if not line:
                    raise ToolError(
                        "The scanner ended unexpectedly.",
                        hint="Try again; if it happens again, build the index anew.",
                    )
                reply: JsonObject = json.loads(line)
                finished = True
            finally:
                if finished:
                    self._put_back(scanner)
                else:
                    await asyncio.shield(kill_group(process))
        if reply.get("late"):
            raise TimeoutError
        if "broken" in reply:
            raise IndexBroken(reply["broken"], reply["detail"])
        return reply

    async def _take(self, part: int | None) -> _Scanner:
        """The scanner that has that part of the texts at hand, or any."""
        while self._idle:
            at = next((n for n, scanner in enumerate(self._idle) if part in (None, scanner.part)), -1)
            scanner = self._idle.pop(at)
            if scanner.process.returncode is None:
                scanner.part = scanner.part if part is None else part
                return scanner
            await kill_group(scanner.process)
        process = await asyncio.create_subprocess_exec(
            *python_module("wsh.workspace.search.scan_child"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            limit=_LIMIT,
        )
        return _Scanner(process, part)

    def _put_back(self, scanner: _Scanner) -> None:
        self._idle.append(scanner)
        if self._reaper is not None:
            self._reaper.cancel()
        self._reaper = asyncio.get_running_loop().call_later(_IDLE_S, self._retire)

    def _retire(self) -> None:
        idle, self._idle = self._idle, []
        for scanner in idle:
            self._tasks.start(kill_group(scanner.process))


async def _all(work: Iterable[Coroutine[object, object, T]]) -> list[T]:
    """All results; the first failure, or a cancellation, ends the others before it is passed on."""
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        return [await task for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
