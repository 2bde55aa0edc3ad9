"""What is so: of an index, of a workspace, of this machine. Reads, never changes."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence

from wsh.wire.json.object import JsonObject
from wsh.wire.setting import Settings
from wsh.wire.version import VERSION
from wsh.workspace.error import NothingThere
from wsh.workspace.file.language import GRAMMARS, has_grammar
from wsh.workspace.file.listing import list_files, run_git
from wsh.workspace.index import store
from wsh.workspace.index.folder import IndexFolder
from wsh.workspace.index.plan import compare
from wsh.workspace.search.hit import iso_time


def describe_index(connection: sqlite3.Connection, home: IndexFolder, now: float) -> JsonObject:
    """Counts, size and age of an index, and how far the files have moved on since."""
    meta = store.get_meta(connection)
    sources = tuple(meta.get("sources", []))
    by_source: Counter[str] = Counter()
    by_language: Counter[str] = Counter()
    bad_names = int(meta.get("bad_names", 0))
    skipped = Counter[str]({"badName": bad_names} if bad_names else {})
    text_bytes = files = 0
    for source, lang, skip, count, size in connection.execute(
        "SELECT source, lang, skip, count(*), sum(text_size) FROM file GROUP BY source, lang, skip"
    ):
        if skip is not None:
            skipped[skip] += count
            continue
        by_source[source] += count
        by_language[lang] += count
        files += count
        text_bytes += size
    kinds = dict(connection.execute("SELECT kind, count(*) FROM chunk GROUP BY kind ORDER BY kind").fetchall())
    built = float(meta.get("built_at", now))
    return {
        "exists": True,
        "sources": list(sources),
        "files": files,
        "chunks": sum(kinds.values()),
        "byKind": kinds,
        "bySource": dict(sorted(by_source.items())),
        "byLanguage": dict(by_language.most_common()),
        "skippedByReason": dict(sorted(skipped.items())),
        "textBytes": text_bytes,
        "sizeBytes": _size(home),
        "builtAt": iso_time(built),
        "ageSeconds": round(max(0.0, now - built), 1),
        "format": store.FORMAT,
        "listedBy": meta.get("listed_by"),
    }


def describe_staleness(connection: sqlite3.Connection, root: str, left_out: Sequence[str] = ()) -> dict[str, int]:
    """Files added, changed (by stat) and removed since the index was brought up to date."""
    sources = tuple(store.get_meta(connection).get("sources", []))
    plan = compare(connection, root, list_files(root, left_out).paths, sources, racy=False)
    added = sum(1 for job in plan.jobs if job.file_id is None)
    return {"added": added, "changed": len(plan.jobs) - added, "removed": len(plan.removed)}


def _size(home: IndexFolder) -> int:
    return sum(entry.stat().st_size for entry in home.folder.iterdir() if entry.name.startswith(("index-", "text-")))


def describe_running(home: IndexFolder) -> JsonObject | None:
    """The build that is under way, by whomever, or None."""
    if not home.is_building():
        return None
    try:
        state = json.loads(home.progress_file.read_bytes())
    except (OSError, ValueError):
        return {"phase": "starting", "done": 0, "total": 0, "startedAt": None}
    return {
        "phase": state.get("phase", "starting"),
        "done": state.get("done", 0),
        "total": state.get("total", 0),
        "startedAt": iso_time(state["startedAt"]) if "startedAt" in state else None,
    }


def describe_git(root: str) -> JsonObject | None:
    """Top level, branch, commit and what is uncommitted; None outside a work tree."""
    top = run_git(root, "rev-parse", "--show-toplevel", timeout_s=10)
    if top is None:
        return None
    raw = run_git(root, "status", "--porcelain=v2", "--branch", "-z", timeout_s=30)
    found: JsonObject = {
        "root": os.fsdecode(top).rstrip("\n"),
        "branch": None,
        "commit": None,
        "ahead": None,
        "behind": None,
        "changed": 0,
        "untracked": 0,
        "conflicts": 0,
    }
    for entry in (raw or b"").decode("utf-8", "replace").split("\0"):
        if entry.startswith("# branch.head ") and not entry.endswith("(detached)"):
            found["branch"] = entry.removeprefix("# branch.head ")
        elif entry.startswith("# branch.oid ") and not entry.endswith("(initial)"):
            found["commit"] = entry.removeprefix("# branch.oid ")
        elif entry.startswith("# branch.ab "):
            ahead, behind = entry.removeprefix("# branch.ab ").split()
            found["ahead"], found["behind"] = int(ahead), -int(behind)
        elif entry.startswith(("1 ", "2 ")):
            found["changed"] += 1
        elif entry.startswith("u "):
            found["conflicts"] += 1
        elif entry.startswith("? "):
            found["untracked"] += 1
    return found


def describe_machine(settings: Settings) -> JsonObject:
    """Versions, limits and capabilities: what this installation can and cannot do."""
    missing = sorted(name for name in GRAMMARS if not has_grammar(name))
    desktop = importlib.util.find_spec("PySide6") is not None
    warnings: list[dict[str, str]] = []
    if missing:
        warnings.append(
            {
                "code": "GRAMMAR_MISSING",
                "message": f"No grammar for {', '.join(missing)}: such files are cut by lines.",
            }
        )
    if not desktop:
        warnings.append(
            {
                "code": "DESKTOP_MISSING",
                "message": "The desktop window needs the extra `gui`: pip install 'wsh-terminal[gui]'.",
            }
        )
    return {
        "versions": {
            "wsh": VERSION,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "treeSitter": _version("tree-sitter"),
            "indexFormat": store.FORMAT,
            "platform": sys.platform,
        },
        "limits": {
            "maxFileBytes": settings.get_int("index.max_file_bytes"),
            "buildTimeoutMs": settings.get_int("index.timeout_ms"),
            "searchTimeoutMs": settings.get_int("index.search_timeout_ms"),
            "transcriptRetentionDays": settings.get_int("index.retention_days"),
            "queueSize": settings.get_int("mcp.queue_size"),
        },
        "capabilities": {
            "grammars": sorted(name for name in GRAMMARS if has_grammar(name)),
            "missingGrammars": missing,
            "desktop": desktop,
            "fts5": True,
            "watching": settings.get_bool("index.watch"),
        },
        "warnings": warnings,
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def resolve_workspace(workspace: str | None, cwd: str) -> str:
    """The real path of the workspace. Raises NothingThere when it is no folder."""
    named = workspace or cwd
    real = os.path.realpath(os.path.join(cwd, os.path.expanduser(named))) if "\0" not in named else ""
    if not real or not os.path.isdir(real):
        raise NothingThere(
            f"The workspace {named!r} is not a folder.", hint="Name an existing folder.", workspace=named[:500]
        )
    return real
