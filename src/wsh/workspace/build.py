"""Building an index: what changed, cut by workers, written in one transaction.

Runs in a process of its own (`build_child`) that may be killed at any instant. It speaks to its caller only through
`report`, and to a reader of the folder through `build.json` (the phase of a running build).
"""

from __future__ import annotations

import json
import marshal
import os
import select
import signal
import sqlite3
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wsh.workspace import entry, store
from wsh.workspace.error import IndexBroken, InvalidArguments, NothingThere
from wsh.workspace.folder import IndexFolder
from wsh.workspace.language import language_of, source_of
from wsh.workspace.listing import list_files
from wsh.workspace.text import Place, TextReader, TextWriter

Report = Callable[[str, int, int], None]

RACY_NS = 2_000_000_000
_PARALLEL_FROM_FILES = 48
_BATCH = 8
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


@dataclass
class Job:
    path: str
    file_id: int | None = None
    sha256: str | None = None


@dataclass
class Plan:
    jobs: list[Job] = field(default_factory=list)
    removed: list[tuple[int, str]] = field(default_factory=list)
    unchanged: int = 0
    seen: int = 0


@dataclass
class Tally:
    added: int = 0
    changed: int = 0
    touched: int = 0
    removed: int = 0
    bytes: int = 0
    chunks: int = 0


def build(request: BuildRequest, report: Report) -> dict[str, Any]:
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


def _build_locked(home: IndexFolder, request: BuildRequest, report: Report, started: float) -> dict[str, Any]:
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


def _fresh(home: IndexFolder, request: BuildRequest, told: _Progress, replaces_broken: bool) -> dict[str, Any]:
    """New files with everything in them. After a broken index, all sources are built: which it held is unknown."""
    wanted = store.INDEXED if replaces_broken else _wanted(request.mode)
    told("listing", 0, 0)
    listed, by = _list(request.root)
    plan = Plan(seen=len(listed))
    paths = () if replaces_broken else request.paths
    plan.jobs = [Job(p) for p in _within(listed, paths) if source_of(language_of(p)) in wanted]
    if request.paths and not plan.jobs and not replaces_broken:
        raise _nothing_under(request.paths)
    path, text_path = home.new_files()
    connection = store.create(path, request.root, text_path.name)
    texts = TextWriter(text_path)
    try:
        connection.execute("BEGIN")
        tally = _execute(connection, texts, None, plan, request, told)
        told("finishing", 0, 0)
        store.settle(connection)
        texts.sync()
        _stamp(connection, wanted, by, texts.end, partial=bool(paths))
        connection.execute("COMMIT")
        result = _result(connection, plan, tally, by)
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


def _update(
    home: IndexFolder, connection: sqlite3.Connection, request: BuildRequest, told: _Progress
) -> dict[str, Any]:
    """One transaction on the current file."""
    meta = store.get_meta(connection)
    wanted = _wanted(request.mode, meta.get("sources"))
    told("listing", 0, 0)
    listed, by = _list(request.root)
    text_path = home.folder / str(meta["text"])
    old_texts = TextReader(text_path)
    texts = TextWriter(text_path, int(meta["text_end"]))
    try:
        connection.execute("BEGIN IMMEDIATE")
        plan = compare(connection, request.root, listed, wanted, request.paths, full=request.full)
        tally = Tally()
        for file_id, _ in plan.removed:
            entry.remove(connection, old_texts, file_id)
            tally.removed += 1
        tally = _execute(connection, texts, old_texts, plan, request, told, tally)
        told("finishing", 0, 0)
        texts.sync()
        _stamp(connection, wanted, by, texts.end, partial=bool(request.paths))
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
    return _result(connection, plan, tally, by) | {"full": request.full}


def _compact(home: IndexFolder, connection: sqlite3.Connection, texts: TextReader, end: int) -> None:
    """When most of the texts are dead, copy the living to a new file. The old one goes with the next build's sweep."""
    live = connection.execute("SELECT coalesce(sum(text_size + 1), 0) FROM file WHERE skip IS NULL").fetchone()[0]
    if end < 2 * live + _COMPACT_FROM_BYTES:
        return
    _, path = home.new_files()
    copy = TextWriter(path)
    try:
        rows = connection.execute(
            "SELECT id, text_start, text_size, text_crc FROM file WHERE text_start IS NOT NULL"
        ).fetchall()
        for file_id, start, size, crc in rows:
            place = copy.append(texts.read(Place(start, size, crc)))
            connection.execute("UPDATE file SET text_start = ? WHERE id = ?", (place.start, file_id))
        copy.sync()
        store.set_meta(connection, text=path.name, text_end=copy.end)
    finally:
        copy.close()


def _list(root: str) -> tuple[list[str], str]:
    """The listing without names that are not UTF-8, which no caller could ask for."""
    listed, by = list_files(root)
    return [path for path in listed if path.isascii() or _is_sound(path)], by


def _is_sound(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _within(listed: Iterable[str], paths: tuple[str, ...]) -> list[str]:
    if not paths:
        return list(listed)
    whole = "." in paths or "" in paths
    below = tuple(p.rstrip("/") + "/" for p in paths)
    exact = {p.rstrip("/") for p in paths}
    return [p for p in listed if whole or p in exact or p.startswith(below)]


def compare(
    connection: sqlite3.Connection,
    root: str,
    listed: list[str],
    wanted: tuple[str, ...],
    paths: tuple[str, ...] = (),
    *,
    full: bool = False,
    racy: bool = True,
) -> Plan:
    """What must be done so that the index is that of the listed files, by stat alone.

    A file whose time is close to when it was indexed may have changed within that instant; with `racy` it is a job.
    """
    known = {
        path: (file_id, size, mtime, indexed, sha)
        for file_id, path, source, size, mtime, indexed, sha in connection.execute(
            "SELECT id, path, source, size, mtime_ns, indexed_ns, sha256 FROM file"
        )
        if source in wanted
    }
    plan = Plan(seen=len(listed))
    present: set[str] = set()
    for path in _within(listed, paths):
        if source_of(language_of(path)) not in wanted:
            continue
        try:
            info = os.lstat(os.path.join(root, path))
        except OSError:
            continue
        present.add(path)
        before = known.get(path)
        if before is None:
            plan.jobs.append(Job(path))
        elif (
            full
            or info.st_size != before[1]
            or info.st_mtime_ns != before[2]
            or racy
            and before[3] - before[2] < RACY_NS
        ):
            plan.jobs.append(Job(path, before[0], None if full else before[4]))
        else:
            plan.unchanged += 1
    candidates = set(_within(known, paths)) if paths else set(known)
    plan.removed = [(known[path][0], path) for path in sorted(candidates - present)]
    if paths and not present and not plan.removed:
        raise _nothing_under(paths)
    return plan


def _nothing_under(paths: tuple[str, ...]) -> NothingThere:
    return NothingThere(
        f"No file of the workspace lies under {', '.join(paths)}.",
        hint="Give files or folders relative to the workspace.",
    )


def _execute(
    connection: sqlite3.Connection,
    texts: TextWriter,
    old_texts: TextReader | None,
    plan: Plan,
    request: BuildRequest,
    told: _Progress,
    tally: Tally | None = None,
) -> Tally:
    tally = tally or Tally()
    next_file = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM file").fetchone()[0]
    next_chunk = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM chunk").fetchone()[0]
    jobs = plan.jobs
    done = 0
    for number, prepared in _prepare_all(jobs, request):
        job = jobs[number]
        done += 1
        told("indexing", done, len(jobs))
        if prepared[entry.CHUNKS] is None and job.file_id is not None:
            entry.touch(connection, job.file_id, prepared)
            tally.touched += 1
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


def _stamp(connection: sqlite3.Connection, wanted: tuple[str, ...], by: str, text_end: int, *, partial: bool) -> None:
    meta = store.get_meta(connection)
    values: dict[str, Any] = {
        "sources": sorted({*meta.get("sources", []), *wanted}),
        "commits": int(meta.get("commits", 0)) + 1,
        "listed_by": by,
        "text_end": text_end,
    }
    if not partial or "built_at" not in meta:
        values["built_at"] = time.time()
    store.set_meta(connection, **values)


def _result(connection: sqlite3.Connection, plan: Plan, tally: Tally, by: str) -> dict[str, Any]:
    skipped = Counter[str]()
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
        "listedBy": by,
    }


# workers


def _prepare_all(jobs: list[Job], request: BuildRequest) -> Iterator[tuple[int, entry.Prepared]]:
    count = request.workers or len(os.sched_getaffinity(0))
    if count < 2 or len(jobs) < _PARALLEL_FROM_FILES:
        for number, job in enumerate(jobs):
            yield number, entry.prepare(request.root, job.path, request.max_file_bytes, job.sha256)
        return
    missing = set(range(len(jobs)))
    for number, prepared in _prepare_in_workers(jobs, request, count):
        missing.discard(number)
        yield number, prepared
    for number in sorted(missing):  # a worker died on one of these: do them without a grammar
        job = jobs[number]
        yield number, entry.prepare(request.root, job.path, request.max_file_bytes, job.sha256, parse=False)


def _prepare_in_workers(jobs: list[Job], request: BuildRequest, count: int) -> Iterator[tuple[int, entry.Prepared]]:
    """Fork workers that take jobs from one shared file offset and answer through a pipe each.

    A full pipe holds its worker back, so memory stays bounded however slow the database is.
    """
    queue = os.memfd_create("wsh-index-jobs", os.MFD_CLOEXEC)
    os.write(queue, b"".join(struct.pack("=I", number) for number in range(len(jobs))))
    os.lseek(queue, 0, os.SEEK_SET)
    pipes: dict[int, bytearray] = {}
    workers: list[int] = []
    try:
        for _ in range(count):
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            pid = os.fork()
            if pid == 0:
                _work(queue, write_end, jobs, request, [read_end, *pipes])
            os.close(write_end)
            workers.append(pid)
            pipes[read_end] = bytearray()
        poller = select.poll()
        for fd in pipes:
            poller.register(fd, select.POLLIN)
        while pipes:
            for fd, _ in poller.poll():
                part = os.read(fd, 1 << 18)
                if not part:
                    poller.unregister(fd)
                    os.close(fd)
                    del pipes[fd]
                    continue
                buffer = pipes[fd]
                buffer += part
                yield from _take_answers(buffer)
    finally:
        os.close(queue)
        for fd in pipes:
            os.close(fd)
        for pid in workers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.waitpid(pid, 0)


def _take_answers(buffer: bytearray) -> Iterator[tuple[int, entry.Prepared]]:
    at = 0
    while len(buffer) - at >= 8:
        number, size = struct.unpack_from("=II", buffer, at)
        if len(buffer) - at - 8 < size:
            break
        with memoryview(buffer) as view:
            prepared = marshal.loads(view[at + 8 : at + 8 + size])
        at += 8 + size
        yield number, prepared
    del buffer[:at]


def _work(queue: int, write_end: int, jobs: list[Job], request: BuildRequest, inherited: list[int]) -> None:
    """The life of a worker; never returns."""
    try:
        for fd in inherited:
            os.close(fd)
        while batch := os.read(queue, 4 * _BATCH):
            for (number,) in struct.iter_unpack("=I", batch):
                job = jobs[number]
                answer = marshal.dumps(entry.prepare(request.root, job.path, request.max_file_bytes, job.sha256))
                _write_all(write_end, struct.pack("=II", number, len(answer)) + answer)
        os._exit(0)
    except BaseException:
        os._exit(1)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


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
        if now >= self._next_file:  # quick builds leave the file alone
            self._next_file = now + 0.5
            state = {"phase": phase, "done": done, "total": total, "pid": os.getpid(), "startedAt": self._since}
            fresh = self._home.progress_file.with_name(".build.json.new")
            fresh.write_text(json.dumps(state))
            fresh.replace(self._home.progress_file)


def read_request(raw: bytes) -> BuildRequest:
    fields = json.loads(raw)
    fields["paths"] = tuple(fields.get("paths", ()))
    request = BuildRequest(**fields)
    if not os.path.isdir(request.root):
        raise NothingThere(f"{request.root} is not a folder.", hint="Name an existing folder as workspace.")
    if request.mode not in ("", "all", *store.INDEXED):
        raise InvalidArguments(f"{request.mode!r} is not a mode of this builder.")
    return request
