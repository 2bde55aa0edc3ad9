"""Building an index: what changed, cut by workers, written in one transaction.

Runs in a process of its own (`build_child`) that may be killed at any instant. It speaks to its caller only through
`report`, and to a reader of the folder through `build.json` (the phase of a running build).
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wsh.wire.json.object import JsonObject
from wsh.workspace.error import IndexBroken, InvalidArguments, NothingThere
from wsh.workspace.file import entry
from wsh.workspace.file.language import language_of, source_of
from wsh.workspace.file.listing import Listing, list_files
from wsh.workspace.file.source import GONE
from wsh.workspace.index import store
from wsh.workspace.index.folder import IndexFolder
from wsh.workspace.index.plan import BuildPlan, Job, compare, nothing_under, within
from wsh.workspace.index.pool import prepare_all
from wsh.workspace.index.text import TextPlace, TextReader, TextWriter

Report = Callable[[str, int, int], None]

_TOLD_FROM_FILES = 200
_COMPACT_FROM_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class BuildRequest:
    folder: str
    root: str
    mode: str = "all"
    full: bool = False
    paths: tuple[str, ...] = ()
    max_file_bytes: int = 2 * 1024 * 1024
    workers: int = 0  # 0 means one per core
    left_out: tuple[str, ...] = ()  # absolute paths


@dataclass
class BuildTally:
    added: int = 0
    changed: int = 0
    touched: int = 0
    removed: int = 0
    bytes: int = 0
    chunks: int = 0


def build(request: BuildRequest, report: Report) -> JsonObject:
    """Bring the index up to date and return the counts. Waits for another build of the same workspace."""
    started = time.monotonic()
    home = IndexFolder(Path(request.folder), request.root)
    home.ensure()
    with home.locked(wait=False) as free:
        if free:
            return _build_locked(home, request, report, started)
    report("waiting", 0, 0)
    with home.locked():
        return _build_locked(home, request, report, started)


def _build_locked(home: IndexFolder, request: BuildRequest, report: Report, started: float) -> JsonObject:
    told = _Progress(home, report)
    rebuilt: dict[str, str] | None = None
    try:
        current = home.find_current()
        existing: sqlite3.Connection | None = None
        if current is not None:
            try:
                existing = store.open_index(current, write=True)
                home.sweep(store.get_meta(existing)["text"])
            except (IndexBroken, KeyError) as problem:
                if existing is not None:
                    existing.close()
                    existing = None
                reason = problem.reason if isinstance(problem, IndexBroken) else "corrupt"
                rebuilt = {"reason": reason, "detail": str(problem)}
        else:
            home.sweep(None)
        try:
            if existing is not None and not (request.full and request.mode == "all" and not request.paths):
                result = _update(home, existing, request, told)
            else:
                result = _fresh(home, request, told, rebuilt is not None)
        except (sqlite3.DatabaseError, IndexBroken) as problem:
            if existing is None or not store.is_corruption(problem):
                raise
            rebuilt = {"reason": "corrupt", "detail": str(problem)}
            result = _fresh(home, request, told, True)
        finally:
            if existing is not None:
                existing.close()
    finally:
        home.progress_file.unlink(missing_ok=True)
    result["rebuilt"] = rebuilt
    result["durationMs"] = round((time.monotonic() - started) * 1000)
    return result


def _wanted(mode: str, held: list[str] | None = None) -> tuple[str, ...]:
    """The sources that a mode means; the empty one means those that the index holds."""
    if not mode:
        return tuple(held or store.INDEXED)
    return store.INDEXED if mode == "all" else (mode,)


def _fresh(home: IndexFolder, request: BuildRequest, told: _Progress, replaces_broken: bool) -> JsonObject:
    """New files with everything in them. After a broken index, all sources are built: which it held is unknown."""
    wanted = store.INDEXED if replaces_broken else _wanted(request.mode)
    told("listing", 0, 0)
    listing = list_files(request.root, request.left_out)
    plan = BuildPlan(seen=len(listing.paths))
    paths = () if replaces_broken else request.paths
    plan.jobs = [Job(p) for p in within(listing.paths, paths) if source_of(language_of(p)) in wanted]
    if request.paths and not plan.jobs and not replaces_broken:
        raise nothing_under(request.paths)
    path, text_path = home.new_files()
    connection = store.create(path, request.root, text_path.name)
    texts = TextWriter(text_path)
    try:
        connection.execute("BEGIN")
        tally = _execute(connection, texts, None, plan, request, told)
        told("finishing", 0, 0)
        store.settle(connection)
        texts.sync()
        _stamp(connection, wanted, listing, texts.end, partial=bool(paths))
        connection.execute("COMMIT")
        result = _result(connection, plan, tally, listing)
        store.finish(connection)
        home.publish(path)
    except BaseException:
        connection.close()
        path.unlink(missing_ok=True)
        text_path.unlink(missing_ok=True)
        raise
    finally:
        texts.close()
    home.sweep(text_path.name)
    return result | {"full": True}


def _update(home: IndexFolder, connection: sqlite3.Connection, request: BuildRequest, told: _Progress) -> JsonObject:
    """One transaction on the current file."""
    meta = store.get_meta(connection)
    wanted = _wanted(request.mode, meta.get("sources"))
    told("listing", 0, 0)
    listing = list_files(request.root, request.left_out)
    text_path = home.folder / str(meta["text"])
    old_texts = TextReader(text_path)
    texts = TextWriter(text_path, int(meta["text_end"]))
    try:
        connection.execute("BEGIN IMMEDIATE")
        plan = compare(connection, request.root, listing.paths, wanted, request.paths, full=request.full)
        tally = BuildTally()
        for file_id, _ in plan.removed:
            entry.remove(connection, old_texts, file_id)
            tally.removed += 1
        tally = _execute(connection, texts, old_texts, plan, request, told, tally)
        told("finishing", 0, 0)
        texts.sync()
        _stamp(connection, wanted, listing, texts.end, partial=bool(request.paths))
        if tally.changed or tally.removed:
            _compact(home, connection, old_texts, texts.end)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    finally:
        texts.close()
        old_texts.close()
    store.empty_log(connection)
    return _result(connection, plan, tally, listing) | {"full": request.full}


def _compact(home: IndexFolder, connection: sqlite3.Connection, texts: TextReader, end: int) -> None:
    """When most of the texts are dead, copy the living to a new file. The old one goes with the next build's sweep."""
    live = connection.execute("SELECT coalesce(sum(text_stored), 0) FROM file WHERE skip IS NULL").fetchone()[0]
    if end < 2 * live + _COMPACT_FROM_BYTES:
        return
    _, path = home.new_files()
    copy = TextWriter(path)
    try:
        rows = connection.execute(
            "SELECT id, text_start, text_stored, text_size, text_crc FROM file WHERE text_start IS NOT NULL"
        ).fetchall()
        for file_id, *old in rows:
            place = copy.append(texts.read(TextPlace(*old)))
            connection.execute(
                "UPDATE file SET text_start = ?, text_stored = ? WHERE id = ?", (place.start, place.stored, file_id)
            )
        copy.sync()
        store.set_meta(connection, text=path.name, text_end=copy.end)
    finally:
        copy.close()


def _execute(
    connection: sqlite3.Connection,
    texts: TextWriter,
    old_texts: TextReader | None,
    plan: BuildPlan,
    request: BuildRequest,
    told: _Progress,
    tally: BuildTally | None = None,
) -> BuildTally:
    tally = tally or BuildTally()
    next_file = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM file").fetchone()[0]
    next_chunk = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM chunk").fetchone()[0]
    jobs = plan.jobs
    done = 0
    for number, prepared in prepare_all(jobs, request.root, request.max_file_bytes, request.workers):
        job = jobs[number]
        done += 1
        told("indexing", done, len(jobs))
        if prepared[entry.CHUNKS] is None and job.file_id is not None:
            entry.touch(connection, job.file_id, prepared)
            tally.touched += 1
            continue
        if prepared[entry.SKIP] == GONE:
            if job.file_id is not None:
                assert old_texts is not None
                entry.remove(connection, old_texts, job.file_id)
                tally.removed += 1
            continue
        if job.file_id is None:
            file_id, next_file = next_file, next_file + 1
            tally.added += 1
        else:
            file_id = job.file_id
            assert old_texts is not None
            entry.remove(connection, old_texts, file_id)
            tally.changed += 1
        next_chunk = entry.write(connection, texts, prepared, file_id, next_chunk)
        tally.bytes += len(prepared[entry.DATA])
        tally.chunks += len(prepared[entry.CHUNKS])
    return tally


def _stamp(
    connection: sqlite3.Connection, wanted: tuple[str, ...], listing: Listing, text_end: int, *, partial: bool
) -> None:
    meta = store.get_meta(connection)
    values: JsonObject = {
        "sources": sorted({*meta.get("sources", []), *wanted}),
        "commits": int(meta.get("commits", 0)) + 1,
        "listed_by": listing.by,
        "bad_names": listing.bad_names,
        "text_end": text_end,
    }
    if not partial or "built_at" not in meta:
        values["built_at"] = time.time()
    store.set_meta(connection, **values)


def _result(connection: sqlite3.Connection, plan: BuildPlan, tally: BuildTally, listing: Listing) -> JsonObject:
    skipped = Counter[str]({"badName": listing.bad_names} if listing.bad_names else {})
    for reason, count in connection.execute("SELECT skip, count(*) FROM file WHERE skip IS NOT NULL GROUP BY skip"):
        skipped[reason] = count
    return {
        "files": {
            "listed": plan.seen,
            "added": tally.added,
            "changed": tally.changed,
            "removed": tally.removed,
            "unchanged": plan.unchanged + tally.touched,
        },
        "chunks": tally.chunks,
        "bytes": tally.bytes,
        "skippedByReason": dict(sorted(skipped.items())),
        "listedBy": listing.by,
    }


class _Progress:
    """Tells the caller and `build.json` how far a build is, not more often than useful."""

    def __init__(self, home: IndexFolder, report: Report) -> None:
        self._home = home
        self._report = report
        self._phase = ""
        self._next = 0.0
        self._next_file = time.monotonic() + 0.5
        self._since = time.time()

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if phase == self._phase and now < self._next and done < total:
            return
        self._phase, self._next = phase, now + 0.1
        self._report(phase, done, total)
        if now >= self._next_file or phase == "indexing" and done == 1 and total > _TOLD_FROM_FILES:
            # quick builds leave the file alone
            self._next_file = now + 0.5
            state = {"phase": phase, "done": done, "total": total, "pid": os.getpid(), "startedAt": self._since}
            fresh = self._home.progress_file.with_name(".build.json.new")
            fresh.write_text(json.dumps(state))
            fresh.replace(self._home.progress_file)


def read_request(raw: bytes) -> BuildRequest:
    fields = json.loads(raw)
    fields |= {key: tuple(fields.get(key, ())) for key in ("paths", "left_out")}
    request = BuildRequest(**fields)
    if not os.path.isdir(request.root):
        raise NothingThere(f"{request.root} is not a folder.", hint="Name an existing folder as workspace.")
    if request.mode not in ("", "all", *store.INDEXED):
        raise InvalidArguments(f"{request.mode!r} is not a mode of this builder.")
    return request
