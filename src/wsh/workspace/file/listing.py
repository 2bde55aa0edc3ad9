"""Which files belong to a workspace.

In a git work tree git says so: tracked files and untracked ones, without ignored ones. Elsewhere `.gitignore` and
`.ignore` files are honoured by pathspec, and folders that tools fill (`node_modules`, caches) are left out.

Git is asked behind its guard: a repository's own configuration could otherwise start a program of its choice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wsh.git.guard import query
from wsh.git.run import run_guarded
from wsh.wire.surrogate import is_sound

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

ALWAYS_LEFT_OUT = frozenset({".git", ".hg", ".svn", ".jj"})
LEFT_OUT_FOLDERS = ALWAYS_LEFT_OUT | {
    "__pycache__",
    "node_modules",
    "bower_components",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".gradle",
    ".terraform",
    ".next",
    ".cache",
    ".idea",
}
_IGNORE_FILES = (".gitignore", ".ignore")
_GIT_TIMEOUT_S = 60
_SUBMODULE = b"160000"  # the mode of one in git's index


def run_git(root: str, *arguments: str, timeout_s: float = _GIT_TIMEOUT_S) -> bytes | None:
    """What git prints, or None when there is no git, no work tree, or it fails."""
    argv = ("git", *arguments)
    settings = _ask(root, query(argv), b"", timeout_s)
    return None if settings is None else _ask(root, argv, settings, timeout_s)


def _ask(root: str, argv: Sequence[str], settings: bytes, timeout_s: float) -> bytes | None:
    done = run_guarded(root, argv, settings, timeout_s)
    return done.stdout if done is not None and done.returncode == 0 else None


@dataclass(frozen=True)
class Listing:
    """Paths relative to the root with forward slashes, sorted, each once; and who made the list: `git` or `walk`.

    `bad_names` counts the files left out because their names are not UTF-8: no caller could ask for one.
    """

    paths: list[str]
    by: str
    bad_names: int


def list_files(root: str, left_out: Sequence[str] = ()) -> Listing:
    """`left_out` are absolute paths; what lies there or below is not listed."""
    closed = find_below(root, left_out)
    found = _git_files(root)
    by = "walk" if found is None else "git"
    listed = set(_walk(root, closed)) if found is None else found
    if closed:
        below = tuple(f"{path}/" for path in closed)
        listed = {path for path in listed if path not in closed and not path.startswith(below)}
    paths = sorted(path for path in listed if is_sound(path))
    return Listing(paths, by, len(listed) - len(paths))


def find_below(root: str, paths: Sequence[str]) -> tuple[str, ...]:
    """The ones of `paths` that lie below `root`, relative to it. All are absolute and canonical."""
    start = root.rstrip("/") + "/"
    return tuple(path[len(start) :] for path in paths if path.startswith(start) and path != start)


def _git_files(root: str, depth: int = 0) -> set[str] | None:
    raw = run_git(root, "ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard")
    if not raw:
        return None  # no work tree, or one that ignores this folder as a whole
    found: set[str] = set()  # a path in conflict is listed once for each side
    for entry in raw.split(b"\0"):
        if not entry:
            continue
        tracked = not entry.startswith(b"? ")  # tag, mode, object, stage, tab and path; else tag and path
        path = os.fsdecode(entry.partition(b"\t")[2] if tracked else entry[2:])
        if path.endswith("/") or (tracked and entry[2:8] == _SUBMODULE):
            inner = path.rstrip("/")
            for below in _nested(os.path.join(root, inner), depth):
                found.add(f"{inner}/{below}")
        else:
            found.add(path)
    return found


def _nested(folder: str, depth: int) -> set[str]:
    """Files of a repository inside another (a submodule, or a clone that nobody added)."""
    if depth >= 4 or not os.path.isdir(folder) or os.path.islink(folder):
        return set()
    return _git_files(folder, depth + 1) or set()


def _walk(root: str, closed: Sequence[str] = ()) -> Iterator[str]:
    specs: dict[str, GitIgnoreSpec] = {}
    for folder, folders, files in os.walk(root, followlinks=False):
        relative = os.path.relpath(folder, root)
        prefix = "" if relative == "." else relative.replace(os.sep, "/") + "/"
        spec = _ignore_spec(folder, files)
        if spec is not None:
            specs[prefix] = spec
        chain = [(at, specs[at]) for at in _prefixes(prefix) if at in specs]
        folders[:] = sorted(
            name
            for name in folders
            if name not in LEFT_OUT_FOLDERS
            and prefix + name not in closed
            and not _ignored(prefix + name + "/", chain)
            and not (name.endswith(".egg-info") or os.path.exists(os.path.join(folder, name, "pyvenv.cfg")))
        )
        for name in files:
            path = prefix + name
            if not chain or not _ignored(path, chain):
                yield path


def _prefixes(prefix: str) -> list[str]:
    parts = prefix.split("/")[:-1]
    return ["", *("/".join(parts[: n + 1]) + "/" for n in range(len(parts)))]


def _ignored(path: str, chain: list[tuple[str, GitIgnoreSpec]]) -> bool:
    """Git's rule: the deepest file that says anything about the path decides."""
    for prefix, spec in reversed(chain):
        verdict = spec.check_file(path[len(prefix) :]).include
        if verdict is not None:
            return verdict
    return False


def _ignore_spec(folder: str, files: list[str]) -> GitIgnoreSpec | None:
    lines: list[str] = []
    for name in _IGNORE_FILES:
        if name in files:
            try:
                lines += Path(folder, name).read_text("utf-8", "replace").splitlines()
            except OSError:
                continue
    if not lines:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)
