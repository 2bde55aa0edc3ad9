"""One search: arguments checked, sources chosen, candidates found and merged, a page of hits rendered.

Words and literals run on a thread and are interrupted at the deadline; patterns run in scanner processes. The caller
(`service`) owns connections, scanners and the store of transcripts, and rebuilds an index that turns out broken.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from wsh.wire.json.object import JsonObject
from wsh.workspace.error import IndexBroken, InvalidArguments
from wsh.workspace.index.reader import Index, Readers, is_interruption
from wsh.workspace.search.filter import Filter
from wsh.workspace.search.find import FileFinder, deadline_guard
from wsh.workspace.search.hit import Candidate
from wsh.workspace.search.linear import Span
from wsh.workspace.search.moment import parse_moment
from wsh.workspace.search.pattern import compile_pattern, literal_to_fts, study
from wsh.workspace.search.query import Query, Term, describe, parse_query, to_fts, wanted_terms
from wsh.workspace.search.scan import ScanResult
from wsh.workspace.search.scanner import Scanners
from wsh.workspace.transcript.transcript import TranscriptFilter, TranscriptStore

MODES = ("all", "code", "prose", "transcripts")
MATCHES = ("words", "literal", "regex")
MAX_DEPTH = 1000
MAX_QUERY = 4000

_FILE_ONLY = ("path", "lang", "name", "modifiedAfter")
_TRANSCRIPT_ONLY = ("session", "exitCode", "since", "until")

T = TypeVar("T")


@dataclass(frozen=True)
class SearchRequest:
    """A search as it was understood. `sources` are those that are really searched."""

    query: str
    match: str
    mode: str
    sources: tuple[str, ...]
    files: Filter
    transcripts: TranscriptFilter
    top: int
    offset: int
    context: int
    explain: bool
    fingerprint: str

    @property
    def in_files(self) -> bool:
        return bool(self.files.sources)

    @property
    def in_transcripts(self) -> bool:
        return "transcripts" in self.sources


@dataclass
class FoundHits:
    """What a search brought, before it is put on the wire."""

    hits: list[JsonObject]
    more: bool
    complete: bool
    plan: JsonObject = field(default_factory=dict)


def _list(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _storable(number: int) -> int:
    """The nearest number that a database holds: nothing in it is beyond."""
    return max(-(2**63), min(number, 2**63 - 1))


def understand(arguments: JsonObject, now: float) -> SearchRequest:
    """Check what the schema cannot: combinations, times, the cursor. Raises InvalidArguments."""
    mode, match = arguments.get("mode", "all"), arguments.get("match", "words")
    query = arguments["query"]
    if len(query) > MAX_QUERY:
        raise InvalidArguments(f"The query is longer than {MAX_QUERY} characters.", hint="Ask for less at once.")
    if not query.strip():
        raise InvalidArguments("The query is empty.", hint="Give at least one word.", position=0)
    kinds = _list(arguments.get("kind"))
    by_files = [name for name in _FILE_ONLY if arguments.get(name) not in (None, [])]
    by_transcripts = [name for name in _TRANSCRIPT_ONLY if arguments.get(name) not in (None, [])]
    if kinds:
        if any(kind != "command" for kind in kinds) and "command" not in kinds:
            by_files.append("kind")
        elif all(kind == "command" for kind in kinds):
            by_transcripts.append("kind")
    if by_files and by_transcripts:
        raise InvalidArguments(
            f"{by_files[0]} narrows files and {by_transcripts[0]} narrows transcripts; nothing can fit both.",
            hint="Use one of them, or search twice.",
        )
    if by_files and mode == "transcripts":
        raise InvalidArguments(f"{by_files[0]} cannot be used with mode transcripts.", hint="Leave one of them out.")
    if by_transcripts and mode in ("code", "prose"):
        raise InvalidArguments(f"{by_transcripts[0]} cannot be used with mode {mode}.", hint="Use mode transcripts.")
    sources = {"all": ("code", "prose", "transcripts"), "transcripts": ("transcripts",)}.get(mode, (mode,))
    if by_files:
        sources = tuple(s for s in sources if s != "transcripts")
    if by_transcripts:
        sources = ("transcripts",)
    after = arguments.get("modifiedAfter")
    since, until = arguments.get("since"), arguments.get("until")
    files = Filter(
        sources=tuple(s for s in sources if s != "transcripts"),
        paths=_list(arguments.get("path")),
        langs=tuple(lang.lower() for lang in _list(arguments.get("lang"))),
        kinds=tuple(kind for kind in kinds if kind != "command"),
        name=arguments.get("name"),
        modified_after_ns=None if after is None else _storable(int(parse_moment("modifiedAfter", after, now) * 1e9)),
    )
    transcripts = TranscriptFilter(
        sessions=_list(arguments.get("session")),
        exit_code=None if arguments.get("exitCode") is None else _storable(arguments["exitCode"]),
        since=None if since is None else parse_moment("since", since, now),
        until=None if until is None else parse_moment("until", until, now),
    )
    kept = {k: v for k, v in arguments.items() if k not in ("cursor", "top", "timeoutMs", "explain", "contextLines")}
    fingerprint = hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]
    return SearchRequest(
        query=query,
        match=match,
        mode=mode,
        sources=sources,
        files=files,
        transcripts=transcripts,
        top=arguments.get("top", 10),
        offset=_read_cursor(arguments.get("cursor"), fingerprint),
        context=arguments.get("contextLines", 2),
        explain=arguments.get("explain", False),
        fingerprint=fingerprint,
    )


def _read_cursor(cursor: str | None, fingerprint: str) -> int:
    if cursor is None:
        return 0
    try:
        kept, offset = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
        if not isinstance(offset, int) or not 0 <= offset <= MAX_DEPTH:
            raise ValueError
    except (ValueError, TypeError):
        raise InvalidArguments("The cursor cannot be read.", hint="Use nextCursor of the page before.") from None
    if kept != fingerprint:
        raise InvalidArguments(
            "The cursor belongs to another search.",
            hint="Repeat the query and its filters unchanged, or drop the cursor.",
        )
    return offset


def write_cursor(fingerprint: str, offset: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([fingerprint, offset]).encode()).decode().rstrip("=")


class Search:
    """Runs one request against an index file (or None: transcripts only) and the store of transcripts."""

    def __init__(
        self,
        request: SearchRequest,
        index: Path | None,
        workspace: str,
        transcripts: TranscriptStore | None,
        readers: Readers,
        scanners: Scanners,
        deadline: float,
    ) -> None:
        self._request = request
        self._index = index
        self._workspace = workspace
        self._transcripts = transcripts if request.in_transcripts else None
        self._readers = readers
        self._scanners = scanners
        self._deadline = deadline
        self._now = time.time()

    async def run(self) -> FoundHits:
        """Raises TimeoutError at the deadline, IndexBroken when the index cannot be used."""
        if self._request.match == "words":
            query = parse_query(self._request.query)
            return await self._on_thread(lambda index: self._words(index, query))
        return await self._scan()

    async def _on_thread(self, work: Callable[[Index | None], T]) -> T:
        """`work` with the index, on a thread; cancelling interrupts it and waits until it has let go."""
        running: list[sqlite3.Connection] = []
        stopped = threading.Event()

        def body() -> T:
            if self._index is None:
                return work(None)
            with self._readers.borrow(self._index) as index:
                deadline_guard(index.connection, self._deadline)
                running.append(index.connection)
                try:
                    if stopped.is_set():
                        raise TimeoutError
                    return work(index)
                except sqlite3.Error as problem:
                    if is_interruption(problem):
                        raise TimeoutError from None
                    raise
                finally:
                    running.clear()

        task = asyncio.ensure_future(asyncio.to_thread(body))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            stopped.set()
            for connection in list(running):
                connection.interrupt()
            await asyncio.wait([task], timeout=5)
            if task.done() and not task.cancelled():
                task.exception()
            raise

    def _words(self, index: Index | None, query: Query) -> FoundHits:
        request = self._request
        need = request.offset + request.top + 1
        terms = wanted_terms(query)
        finder = None if index is None else FileFinder(index, request.files, self._now)
        found: list[Candidate] = [] if finder is None else finder.find_words(query, need)
        if self._transcripts is not None:
            found += self._transcripts.find_words(query, request.transcripts, need, self._now, self._workspace)
            found.sort(key=lambda c: c.order)
        plan = {"query": describe(query), "fts": to_fts(query), "candidates": len(found)}
        return self._page(found, finder, terms, plan, complete=True)

    async def _scan(self) -> FoundHits:
        """Literals and patterns: scanners find the matches, a thread ranks and renders them."""
        request = self._request
        literal = request.query if request.match == "literal" else None
        fts = literal_to_fts(literal) if literal is not None else study(compile_pattern(request.query)).fts
        result = ScanResult()
        if self._index is not None:
            result = await self._scanners.scan_files(
                str(self._index), request.match, request.query, fts, request.files, self._seconds_left()
            )
        rows: list[tuple[int, int, list[Span]]] = []
        if self._transcripts is not None and self._transcripts.exists():
            try:
                rows = await self._scanners.scan_transcripts(
                    str(self._transcripts.path),
                    request.match,
                    request.query,
                    fts,
                    request.transcripts,
                    self._seconds_left(),
                )
            except IndexBroken as problem:
                if problem.reason != "corrupt":
                    raise
                self._transcripts.give_up(problem.message)
        plan = {"fts": fts, "candidateFiles": result.candidates, "matchingFiles": len(result.files)}
        need = request.offset + request.top + 1

        def finish(index: Index | None) -> FoundHits:
            finder = None if index is None else FileFinder(index, request.files, self._now)
            found = [] if finder is None else finder.from_matches(result.files, literal, need)
            if self._transcripts is not None:
                found += self._transcripts.from_matches(rows, self._now, self._workspace)
                found.sort(key=lambda c: c.order)
            return self._page(found, finder, [], plan, complete=result.complete)

        return await self._on_thread(finish)

    def _seconds_left(self) -> float:
        return max(0.001, self._deadline - time.monotonic())

    def _page(
        self,
        found: list[Candidate],
        finder: FileFinder | None,
        terms: list[Term],
        plan: JsonObject,
        *,
        complete: bool,
    ) -> FoundHits:
        request = self._request
        hits: list[JsonObject] = []
        for candidate in found[request.offset : request.offset + request.top]:
            if candidate.origin == "file":
                assert finder is not None
                hits.append(finder.render(candidate, terms, request.context, explain=request.explain))
            else:
                assert self._transcripts is not None
                hits.append(self._transcripts.render(candidate, terms, request.context, explain=request.explain))
        more = len(found) > request.offset + request.top and request.offset + request.top < MAX_DEPTH
        return FoundHits(
            hits, more, complete, plan | {"sources": list(request.sources), "filter": asdict(request.files)}
        )


def check_known(request: SearchRequest) -> None:
    """Refuse filters that name nothing that can exist, rather than finding nothing."""
    from wsh.workspace.file.language import LANGUAGES

    unknown = [lang for lang in request.files.langs if lang not in LANGUAGES]
    if unknown:
        raise InvalidArguments(
            f"{unknown[0]!r} is not a language that wsh knows.",
            hint=f"Known are: {', '.join(LANGUAGES)}.",
            argument="lang",
        )
