"""What git would start in a repository, run by somebody who does not guard it. Asking starts nothing of the repository's."""

from __future__ import annotations

import os
from collections.abc import Sequence

from wsh.git.guard import READING_COMMANDS, Unguarded, find_started, get_placed, get_verb, list_gitlinks, query
from wsh.git.run import run_guarded

_TIMEOUT_S = 10.0
_MOST_REPOSITORIES = 32
"""One with more submodules than that is not looked through."""
_READING_HOOKS = frozenset({"post-index-change", "reference-transaction"})
"""Hooks that commands which only read can start: they write what they found of the index, and may touch references."""


def explain_unguarded(argv: Sequence[str], cwd: str) -> str | None:
    """What `argv` of git, without the guard, may start in `cwd` that a repository names; None for an ordinary repository.

    Also says so where that cannot be found out. Looks at the disk and runs git: not on the loop.
    """
    verb = get_verb(argv)
    reading = verb in READING_COMMANDS and not (verb == "worktree" and "add" in argv)
    # A bare repository inside a work tree is no repository for the guard, and one for git as it is.
    asked = ("git", "-c", "safe.bareRepository=all", *get_placed(argv)[1:])
    pending = [(asked, cwd)]
    looked = 0
    while pending:
        if looked == _MOST_REPOSITORIES:
            return "more submodules than are looked through"
        looked += 1
        words, folder = pending.pop()
        found = _explain_one(words, folder, reading)
        if isinstance(found, str):
            return found
        pending += [(asked[:3], inner) for inner in found]
    return None


def _explain_one(asked: Sequence[str], cwd: str, reading: bool) -> str | list[str]:
    """What may be started, else the folders of submodules that are there."""
    told = run_guarded(cwd, query(asked), b"", _TIMEOUT_S)
    if told is None or told.returncode != 0:
        return "settings of git that cannot be read"
    try:
        key = find_started(told.stdout)
    except Unguarded as problem:
        return str(problem)
    if key is not None:
        return f"the setting {key} of the repository"
    paths = ("rev-parse", "--path-format=absolute", "--git-common-dir")
    placed = run_guarded(cwd, (*asked, *paths), told.stdout, _TIMEOUT_S)
    if placed is None:
        return "a repository that cannot be found"
    if placed.returncode != 0:
        return []  # no repository: git will say so
    hook = _find_hook(os.path.join(os.fsdecode(placed.stdout.removesuffix(b"\n")), "hooks"), reading)
    if hook is not None:
        return f"the hook {hook} of the repository"
    top = run_guarded(cwd, (*asked, "rev-parse", "--path-format=absolute", "--show-toplevel"), told.stdout, _TIMEOUT_S)
    if top is None:
        return "a repository that cannot be found"
    if top.returncode != 0:
        return []  # without a work tree there are no submodules to look into
    tracked = run_guarded(cwd, (*asked, "ls-files", "--stage", "--full-name", "-z", ":/"), told.stdout, _TIMEOUT_S)
    if tracked is None:
        return "an index that cannot be read"
    root = os.fsdecode(top.stdout.removesuffix(b"\n"))
    inner = [os.path.join(root, os.fsdecode(path)) for path in list_gitlinks(tracked.stdout)]
    return [folder for folder in inner if os.path.lexists(os.path.join(folder, ".git"))]


def _find_hook(folder: str, reading: bool) -> str | None:
    """The first hook that git would start from there."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    for name in names:
        if (name in _READING_HOOKS if reading else "." not in name) and os.access(os.path.join(folder, name), os.X_OK):
            return name
    return None
