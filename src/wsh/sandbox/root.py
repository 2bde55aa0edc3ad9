"""Which folders a sandbox can be made of: the system's that are always readable, those that never are (`secret`), and what is protected in a project.

A root is judged by its canonical path. Nothing here opens a file; what exists is looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wsh.sandbox.profile import contains
from wsh.sandbox.secret import HOME_SECRETS, SYSTEM_SECRETS

SYSTEM = tuple(
    "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix/store /gnu/store /run/current-system /home/linuxbrew/.linuxbrew "
    "/sys/devices/system/cpu".split()
)
"""Readable in every sandbox, where they exist."""

PROTECTED = (".git/hooks", ".git/config", ".git/config.worktree", ".vscode", ".wsh", ".claude", ".codex")
"""Below a writable root and yet read-only: what a program outside would execute or obey."""

HOME_FILES = (".zshrc",)
HOME_FOLDERS = (".local/share/fish/generated_completions",)
"""In the empty home folder of a sandbox: without the first zsh asks how it is to be set up, without the second fish reads all manuals."""

_CLOSED_TO_WRITES = (
    "/boot",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/run",
    "/var/spool",
    "/var/lib",
    "/var/log",
    "/root/.config",
)
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


@dataclass(frozen=True)
class Ground:
    """The folders of this user and of wsh, canonical."""

    home: str
    own: tuple[str, ...]
    """Where wsh keeps its sockets, tokens, journals and policy."""

    @property
    def never(self) -> tuple[str, ...]:
        """What no sandbox sees; of a symbolic link also what it leads to."""
        named = [os.path.join(self.home, name) for name in HOME_SECRETS]
        return tuple(dict.fromkeys((*named, *map(os.path.realpath, named), *self.own)))


def survey(home: str | None, own: Iterable[str | os.PathLike[str]]) -> Ground:
    return Ground(os.path.realpath(home or os.path.expanduser("~")), tuple(os.path.realpath(path) for path in own))


def find_problem(root: str, ground: Ground, *, writable: bool) -> str | None:
    """Why `root` cannot be one; None if it can. `root` is canonical."""
    for closed in ground.never:
        if contains(closed, root):
            return f"{root} is closed to every sandbox ({closed})"
        if contains(root, closed):
            return f"{root} contains {closed}, which is closed to every sandbox"
    for closed in SYSTEM_SECRETS:
        if contains(closed, root) or (root != "/etc" and contains(root, closed)):
            return f"{root} overlaps {closed}, which is closed to every sandbox"
    if root == "/" or contains(root, ground.home):
        return f"{root} is or contains the home folder"
    for closed in ("/proc", "/sys", "/dev", "/run", "/var/run"):
        if (contains(closed, root) or contains(root, closed)) and not any(contains(known, root) for known in SYSTEM):
            return f"{root} holds devices, sockets or the kernel's files ({closed})"
    if root in _TEMPORARY:
        return f"{root} is shared by everybody; a sandbox has one of its own"
    if writable:
        for closed in (*SYSTEM, *_CLOSED_TO_WRITES):
            if contains(closed, root) or contains(root, closed):
                return f"{root} belongs to the system ({closed})"
        inside = os.path.relpath(root, ground.home)
        if contains(ground.home, root) and inside.startswith(".") and not inside.startswith(".."):
            return f"{root} is a hidden folder of the home folder, where programs keep what they obey"
        protected = _find_protected_above(root)
        if protected is not None:
            return f"{root} overlaps the protected {protected}"
    return None


def _find_protected_above(root: str) -> str | None:
    parts = root.strip("/").split("/")
    for name in (".git", *PROTECTED):
        words = name.split("/")
        for start in range(len(parts)):
            if parts[start : start + len(words)] == words:
                return name
    return None


def list_system() -> Iterator[tuple[str, str | None]]:
    """The system's folders that are here, each with what it points to if it is a link."""
    for path in SYSTEM:
        if os.path.islink(path):
            yield path, os.readlink(path)
        elif os.path.exists(path):
            yield path, None


def list_secrets() -> list[str]:
    """Paths with secrets that this user could read. In a folder that everybody may list, files are closed to all but root."""
    found = [path for path in SYSTEM_SECRETS if os.access(path, os.R_OK)]
    return found if os.geteuid() == 0 else [path for path in found if not os.path.isdir(path)]


def find_resolver() -> str | None:
    """The file that says who resolves names, where it lies outside the system's folders."""
    path = os.path.realpath("/etc/resolv.conf")
    return path if os.path.isfile(path) and not any(contains(known, path) for known in SYSTEM) else None


def reaches(path: str, roots: Sequence[str]) -> bool:
    """Whether a program at `path` can be read inside."""
    found = os.path.realpath(path)
    return any(contains(os.path.realpath(root), found) for root in (*SYSTEM, *roots))
