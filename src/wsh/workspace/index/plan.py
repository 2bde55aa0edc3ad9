"""What a build has to do: the files of a workspace compared with those of its index, by stat alone.

Reads no file and writes no table. The status of an index asks the same question to tell how stale it is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from wsh.workspace.error import NothingThere
from wsh.workspace.file.language import language_of, source_of
from wsh.workspace.file.source import modified_ns

RACY_NS = 2_000_000_000


@dataclass
class Job:
    path: str
    file_id: int | None = None
    sha256: str | None = None


@dataclass
class BuildPlan:
    jobs: list[Job] = field(default_factory=list)
    removed: list[tuple[int, str]] = field(default_factory=list)
    unchanged: int = 0
    seen: int = 0


def within(listed: Iterable[str], paths: tuple[str, ...]) -> list[str]:
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
) -> BuildPlan:
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
    plan = BuildPlan(seen=len(listed))
    present: set[str] = set()
    for path in within(listed, paths):
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
            or modified_ns(info) != before[2]
            or racy
            and before[3] - before[2] < RACY_NS
        ):
            plan.jobs.append(Job(path, before[0], None if full else before[4]))
        else:
            plan.unchanged += 1
    candidates = set(within(known, paths)) if paths else set(known)
    plan.removed = [(known[path][0], path) for path in sorted(candidates - present)]
    if paths and not present and not plan.removed:
        raise nothing_under(paths)
    return plan


def nothing_under(paths: tuple[str, ...]) -> NothingThere:
    return NothingThere(
        f"No file of the workspace lies under {', '.join(paths)}.",
        hint="Give files or folders relative to the workspace.",
    )
