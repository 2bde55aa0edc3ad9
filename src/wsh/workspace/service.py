"""The workspace room as one object: builds, searches, shows, tells.

It owns the readers, the scanners and the store of transcripts, and gives JSON-ready results or raises a `ToolError`.
Deadlines are the callers' (`tool`): whatever is cancelled here stops its work and kills the processes it started.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from wsh.wire.json.object import JsonObject
from wsh.wire.setting import Settings
from wsh.wire.system.place import Places
from wsh.workspace.child import LocalRunner, ProgramRunner, python_module
from wsh.workspace.error import (
    IndexBroken,
    NoIndex,
    NothingThere,
    ToolError,
    from_payload,
)
from wsh.workspace.file.listing import find_below
from wsh.workspace.file.show import Wanted, resolve_inside, show
from wsh.workspace.index import archive, status, store
from wsh.workspace.index.folder import IndexFolder
from wsh.workspace.index.reader import Index, Readers
from wsh.workspace.index.refresh import Watcher
from wsh.workspace.search.excerpt import find_chunk, find_sha256, show_chunk
from wsh.workspace.search.hit import decode_id, iso_time
from wsh.workspace.search.scanner import Scanners
from wsh.workspace.search.search import FoundHits, Search, SearchRequest, check_known, understand, write_cursor
from wsh.workspace.surroundings import Alone, Surroundings, ToolContext
from wsh.workspace.transcript.transcript import TranscriptStore
from wsh.workspace.transcript.upkeep import TranscriptUpkeep

log = logging.getLogger(__name__)

T = TypeVar("T")

_PHASES = {
    "waiting": "Waiting for another build of this workspace",
    "listing": "Listing files",
    "indexing": "Indexing files",
    "finishing": "Writing the index",
}
_BACKGROUND_NICE = 15


class WorkspaceService:
    """Make one per server (or command), close it with `aclose`."""

    def __init__(
        self,
        places: Places,
        settings: Settings,
        surroundings: Surroundings | None = None,
        runner: ProgramRunner | None = None,
    ) -> None:
        self.settings = settings
        self._base = self.folder = places.index
        self._own = tuple(os.path.realpath(folder) for folder in (places.config, places.state, places.runtime))
        """wsh's own folders: no part of the index of a folder above them."""
        self._around: Surroundings = surroundings or Alone()
        self._watcher: Watcher | None = None
        self._runner: ProgramRunner = runner or LocalRunner()
        self._readers = Readers()
        self._scanners = Scanners()
        self.transcripts = TranscriptStore(places.index / "transcripts.db", settings.get_int("index.retention_days"))
        self.upkeep = TranscriptUpkeep(self.transcripts, self.folder)

    def start_watching(self) -> None:
        """From now on, workspaces that are built or searched are kept fresh in the background."""
        if self.settings.get_bool("index.watch") and self._watcher is None:

            async def refresh(root: str) -> None:
                await self._run_builder(root, "", False, [], ToolContext(root), True)

            self._watcher = Watcher(refresh, self.home_of)

    def _follow(self, root: str) -> None:
        if self._watcher is not None:
            self._watcher.follow(root)

    async def aclose(self) -> None:
        if self._watcher is not None:
            await self._watcher.aclose()
        await self._scanners.aclose()
        self._readers.close()
        await self.upkeep.aclose()

    def home_of(self, root: str) -> IndexFolder:
        return IndexFolder.of(self._base, root)

    def _admit(self, workspace: str | None, context: ToolContext) -> str:
        """The real path of a workspace that the caller may read."""
        root = status.resolve_workspace(workspace, context.cwd)
        context.reach.check_root(root)
        return root

    # index_build

    async def build(
        self,
        context: ToolContext,
        workspace: str | None = None,
        mode: str = "all",
        full: bool = False,
        paths: list[str] | None = None,
    ) -> JsonObject:
        """Bring the index up to date in a child process. Cancelling kills it and leaves the index as it was."""
        root = status.resolve_workspace(workspace, context.cwd)
        started = time.monotonic()
        result: JsonObject = {"workspace": root, "mode": mode}
        if mode != "transcripts":
            context.reach.check_root(root)
            inside = self._inside(root, paths or [], context)
            result |= await self._run_builder(root, mode, full, inside, context)
        if mode == "transcripts":
            self.upkeep.check()
            result |= {"files": None, "chunks": 0, "bytes": 0, "skippedByReason": {}, "rebuilt": None, "full": full}
        if mode in ("all", "transcripts"):
            result["transcripts"] = await self.upkeep.build(full) if self.upkeep.possible else None
        result["durationMs"] = round((time.monotonic() - started) * 1000)
        if mode != "transcripts":
            self._follow(root)
        return result

    def _inside(self, root: str, paths: list[str], context: ToolContext) -> list[str]:
        inside = []
        real_root = Path(root)
        for path in paths:
            real = Path(resolve_inside(root, path))
            context.reach.check_file(str(real))
            inside.append("." if real == real_root else real.relative_to(real_root).as_posix())
        return inside

    async def _run_builder(
        self,
        root: str,
        mode: str,
        full: bool,
        paths: list[str],
        context: ToolContext,
        background: bool = False,
    ) -> JsonObject:
        """An empty `mode` means whatever the index holds already."""
        home = self.home_of(root)
        request = {
            "folder": str(home.folder),
            "root": root,
            "mode": mode,
            "full": full,
            "paths": paths,
            "max_file_bytes": self.settings.get_int("index.max_file_bytes"),
            "workers": 1 if background else 0,
            "left_out": self._own,
        }
        answer: JsonObject = {}

        def on_line(line: bytes) -> None:
            message = json.loads(line)
            if "progress" in message:
                phase, done, total = message["progress"]
                context.progress(_describe(phase, done, total), "index")
            else:
                answer.update(message)

        code, errors = await self._runner.run(
            python_module("wsh.workspace.index.build_child"),
            json.dumps(request).encode(),
            on_line,
            nice=_BACKGROUND_NICE if background else 0,
        )
        if "result" in answer:
            result: JsonObject = answer["result"]
            return result
        if "error" in answer:
            raise from_payload(answer["error"])
        log.error("the index builder ended with %s: %s", code, errors.decode("utf-8", "replace"))
        raise ToolError("The index builder ended unexpectedly.", hint="The old index is intact; the log has more.")

    # export and import

    async def export_index(self, context: ToolContext, workspace: str | None, file: str) -> JsonObject:
        root = status.resolve_workspace(workspace, context.cwd)
        target = Path(context.cwd, file)
        return {"workspace": root, **await asyncio.to_thread(archive.export_index, self.home_of(root), target)}

    async def import_index(self, context: ToolContext, workspace: str | None, file: str) -> JsonObject:
        root = status.resolve_workspace(workspace, context.cwd)
        limit = self.settings.get_int("index.max_archive_bytes")
        return await asyncio.to_thread(archive.import_index, self.home_of(root), Path(context.cwd, file), limit)

    # index_status

    async def index_status(self, context: ToolContext, workspace: str | None = None) -> JsonObject:
        root = self._admit(workspace, context)
        home = self.home_of(root)
        running = await asyncio.to_thread(status.describe_running, home)
        result: JsonObject = {"workspace": root, "exists": False, "running": running, "problem": None}
        result["watched"] = self._watcher is not None and self._watcher.is_following(root)
        current = home.find_current()
        if current is not None:
            try:
                result |= await self._read(current, lambda connection: self._describe_index(connection, home, root))
            except IndexBroken as problem:
                result["problem"] = {"reason": problem.reason, "message": problem.message, "hint": problem.hint}
        if self.upkeep.possible:
            await self.upkeep.refresh(self.settings.get_int("index.search_timeout_ms") / 2000)
            result["transcripts"] = await asyncio.to_thread(self.upkeep.describe)
        else:
            result["transcripts"] = None
        return result

    def _describe_index(self, connection: sqlite3.Connection, home: IndexFolder, root: str) -> JsonObject:
        described = status.describe_index(connection, home, time.time())
        return described | {"stale": status.describe_staleness(connection, root, self._own)}

    async def _read(self, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._read_index(path, lambda index: work(index.connection))

    async def _read_index(self, path: Path, work: Callable[[Index], T]) -> T:
        def body() -> T:
            try:
                with self._readers.borrow(path) as index:
                    return work(index)
            except sqlite3.DatabaseError as problem:
                if store.is_corruption(problem):
                    raise IndexBroken("corrupt", str(problem)) from None
                raise

        return await asyncio.to_thread(body)

    # search

    async def search(self, context: ToolContext, arguments: JsonObject) -> JsonObject:
        """`arguments` are those of the tool, already checked against its schema."""
        started = time.monotonic()
        timeout_ms = arguments.get("timeoutMs", self.settings.get_int("index.search_timeout_ms"))
        deadline = started + timeout_ms / 1000
        root = status.resolve_workspace(arguments.get("workspace"), context.cwd)
        request = understand(arguments | {"workspace": root}, time.time())
        check_known(request)
        if request.mode == "transcripts":
            self.upkeep.check()
        if request.in_files:
            context.reach.check_root(root)
            closed = find_below(root, context.reach.closed)
            request = replace(request, files=replace(request.files, closed=closed))
        warnings: list[dict[str, str]] = []
        if request.in_transcripts and self.upkeep.possible:
            stale = await self.upkeep.refresh((deadline - time.monotonic()) / 2)
            if stale is not None:
                warnings.append({"code": "TRANSCRIPTS_STALE", "message": f"The newest output is missing: {stale}"})
        found = await self._search_sound(request, root, context, deadline, warnings)
        if self.transcripts.rebuilt:
            warnings.append({"code": "TRANSCRIPTS_REBUILT", "message": "The transcripts were damaged and start anew."})
            self.transcripts.rebuilt = None
        if not found.complete:
            warnings.append({"code": "TOO_MANY_MATCHES", "message": "Only a part of the matches was looked at."})
        if request.in_files:
            self._follow(root)
        result: JsonObject = {
            "workspace": root,
            "query": request.query,
            "match": request.match,
            "searched": [s for s in request.sources if s != "transcripts" or self.upkeep.possible],
            "hits": found.hits,
            "nextCursor": write_cursor(request.fingerprint, request.offset + request.top) if found.more else None,
            "durationMs": round((time.monotonic() - started) * 1000, 2),
            "warnings": warnings,
        }
        if request.explain:
            result["explain"] = found.plan
        return result

    async def _search_sound(
        self, request: SearchRequest, root: str, context: ToolContext, deadline: float, warnings: list[dict[str, str]]
    ) -> FoundHits:
        """Search; an index that cannot be used is rebuilt first, and that is said."""
        for attempt in (1, 2):
            index = await self._index_for(request, root)
            search = Search(
                request,
                index,
                root,
                self.transcripts if self.upkeep.possible else None,
                self._readers,
                self._scanners,
                deadline,
            )
            try:
                return await search.run()
            except (IndexBroken, sqlite3.DatabaseError) as problem:
                if index is None or attempt == 2 or not store.is_corruption(problem):
                    raise
                self._readers.forget(index)
                if self.home_of(root).find_current() != index:
                    continue  # another build has put a new one in its place meanwhile
                reason = problem.reason if isinstance(problem, IndexBroken) else "corrupt"
                await self._run_builder(root, "all", reason == "corrupt", [], context)
                warnings.append(
                    {
                        "code": "INDEX_REBUILT",
                        "message": f"The index could not be used ({reason}) and was built anew.",
                    }
                )
        raise AssertionError

    async def _index_for(self, request: SearchRequest, root: str) -> Path | None:
        if not request.in_files:
            return None
        home = self.home_of(root)
        current = home.find_current()
        if current is None:
            raise NoIndex(root, request.mode)
        if request.mode in store.INDEXED:
            try:
                sources = await self._read(current, lambda c: store.get_meta(c).get("sources", []))
            except IndexBroken:
                return current  # found again by the search, and mended there
            if request.mode not in sources:
                raise NoIndex(root, request.mode)
        return current

    # show_file

    async def show_file(
        self,
        context: ToolContext,
        workspace: str | None = None,
        path: str | None = None,
        id: str | None = None,
        start_line: int | None = None,
        end_line: int | None = None,
        max_bytes: int = 65_536,
    ) -> JsonObject:
        root = status.resolve_workspace(workspace, context.cwd)
        home = self.home_of(root)
        check = context.reach.check_file
        if id is None:
            assert path is not None
            context.reach.check_root(root)
            wanted = Wanted(start_line or 1, end_line, max_bytes)
            shown = await _stoppable(lambda stop: show(root, path, wanted, stop, check))
            return await self._finish_shown(shown, root, home, None)
        kind, uid = decode_id(id)
        if kind == "t":
            return await asyncio.to_thread(self.upkeep.show, root, id, uid, start_line, end_line, max_bytes)
        context.reach.check_root(root)
        current = home.find_current()
        chunk = None if current is None else await self._read_index(current, lambda index: find_chunk(index, uid))
        if chunk is None:
            raise NothingThere(
                f"The index of {root} has no hit {id}.", hint="The text has changed since; search again.", id=id
            )
        shown = await _stoppable(lambda stop: show_chunk(root, chunk, start_line, end_line, max_bytes, stop, check))
        return await self._finish_shown(shown, root, home, id)

    async def _finish_shown(self, shown: JsonObject, root: str, home: IndexFolder, id: str | None) -> JsonObject:
        current = home.find_current()
        known: str | None = None
        if current is not None:
            try:
                known = await self._read(current, lambda c: find_sha256(c, shown["path"]))
            except IndexBroken:
                known = None
        modified = shown.pop("modifiedNs")
        return (
            {"workspace": root, "id": id, "source": "file"}
            | shown
            | {
                "modifiedAt": iso_time(modified / 1e9),
                "indexed": known is not None,
                "changedSinceIndex": None if known is None else known != shown["sha256"],
            }
        )

    # check_status and workspace_status

    async def check_status(self, context: ToolContext) -> JsonObject:
        machine = await asyncio.to_thread(status.describe_machine, self.settings)
        policy = await self._around.describe_policy()
        if policy.get("state") == "strict":
            machine["warnings"].append({"code": "POLICY_STRICT", "message": str(policy.get("warning") or "Strict.")})
        if not self.upkeep.possible:
            machine["warnings"].append(
                {"code": "TRANSCRIPTS_OFF", "message": "Journaling is off, so there are no transcripts to search."}
            )
        machine["warnings"] += self._around.list_warnings(context.environ)
        machine["capabilities"]["transcripts"] = self.upkeep.possible
        return machine | {"queue": self._around.describe_queue(), "policy": policy}

    async def workspace_status(self, context: ToolContext, workspace: str | None = None) -> JsonObject:
        root = self._admit(workspace, context)
        home = self.home_of(root)
        git = await asyncio.to_thread(status.describe_git, root)
        current = home.find_current()
        sources: list[str] = []
        problem: str | None = None
        if current is not None:
            try:
                sources = await self._read(current, lambda c: store.get_meta(c).get("sources", []))
            except IndexBroken as broken:
                problem = broken.message
        modes: dict[str, JsonObject] = {}
        for mode in store.INDEXED:
            reason = None if mode in sources else problem or "There is no index; run index_build."
            modes[mode] = {"available": reason is None, "reason": reason}
        off = None if self.upkeep.possible else "Journaling is off (setting journal.enabled)."
        modes["transcripts"] = {"available": off is None, "reason": off}
        every = all(entry["available"] for entry in modes.values())
        modes["all"] = {
            "available": any(modes[mode]["available"] for mode in store.INDEXED),
            "reason": None if every else "; ".join(f"{m}: {e['reason']}" for m, e in modes.items() if e["reason"]),
        }
        below = root.rstrip("/") + "/"
        sessions = [
            session
            for session in self._around.list_sessions()
            if session.get("running", True) and f"{session.get('cwd') or ''}/".startswith(below)
        ]
        return {
            "workspace": root,
            "roots": [root] if git is None or git["root"] == root else [root, git["root"]],
            "git": git,
            "modes": modes,
            "sessions": sessions,
        }


def _describe(phase: str, done: int, total: int) -> str:
    text = _PHASES.get(phase, phase)
    return f"{text}: {done} of {total}" if total else text


async def _stoppable(work: Callable[[threading.Event], T]) -> T:
    """`work` on a thread, told to stop when the caller is cancelled."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop)
    finally:
        stop.set()
