"""The commit that this build is made of: from a file that a build puts beside us, or from the checkout we run in.

No program is run: a repository's own settings could make git run others. Standard library only.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
FILE = "commit.txt"
"""Written by the build, into the package."""
_HASH = re.compile(r"[0-9a-f]{40,64}")


@cache
def find_commit() -> str | None:
    """The whole hash, or None where there is neither a build's file nor a checkout of ours."""
    written = _read(_PACKAGE / FILE)
    if written is not None:
        return _checked(written)
    root = _PACKAGE.parents[1]
    return read_head(root) if (root / "pyproject.toml").is_file() else None


def read_head(root: Path) -> str | None:
    """What is checked out at `root`; None if that cannot be told."""
    folder = root / ".git"
    link = _read(folder) if folder.is_file() else None
    if link is not None and link.startswith("gitdir:"):
        folder = root / link.removeprefix("gitdir:").strip()
    shared = _read(folder / "commondir")
    common = folder / shared if shared is not None else folder
    head = _read(folder / "HEAD")
    if head is None or not head.startswith("ref:"):
        return _checked(head)
    name = head.removeprefix("ref:").strip()
    for place in (folder, common):
        found = _checked(_read(place / name))
        if found is not None:
            return found
    for line in (_read(common / "packed-refs") or "").splitlines():
        if line.endswith(f" {name}"):
            return _checked(line.split(" ", 1)[0])
    return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _checked(text: str | None) -> str | None:
    return text if text is not None and _HASH.fullmatch(text) else None
