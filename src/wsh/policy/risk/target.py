"""Which paths are worth more than a question: the root, system folders, homes, devices.

Paths are judged as text; symbolic links are not followed, because nothing here may touch the disk. Words may hold
stand-ins for globs, the home folder and unknown text.
"""

from __future__ import annotations

import posixpath
from enum import StrEnum

from wsh.policy.parse.word import GLOB, HOME, UNKNOWN


class Target(StrEnum):
    ROOT = "root"
    SYSTEM = "system"
    HOME = "home"
    DEVICE = "device"
    SINK = "sink"
    """Writing there destroys nothing: /dev/null, the terminal, standard output."""
    ORDINARY = "ordinary"
    UNKNOWN = "unknown"


_SYSTEM = frozenset(
    "/bin /boot /dev /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /nix /opt /proc /root /run /sbin /snap /srv "
    "/sys /usr /usr/bin /usr/include /usr/lib /usr/lib64 /usr/libexec /usr/local /usr/sbin /usr/share /var /var/lib "
    "/var/log /Applications /Library /System /Users /Volumes /private /private/etc /private/var /etc/ssh /etc/pam.d "
    "/boot/efi /var/lib/docker /var/lib/postgresql /var/lib/mysql".split()
)
_SINKS = frozenset("/dev/null /dev/zero /dev/full /dev/tty /dev/stdin /dev/stdout /dev/stderr /dev/random".split())
_SINK_PREFIXES = ("/dev/fd/", "/dev/pts/", "/dev/shm/", "/dev/tcp/", "/dev/udp/", "/dev/urandom", "/dev/tty")


def resolve(word: str, cwd: str | None, home: str | None) -> str | None:
    """An absolute, normalised path, with HOME standing in at its start if it lies there; None if not known."""
    path = word
    if path.startswith(UNKNOWN):
        return None
    if not path.startswith(("/", HOME)):
        if cwd is None:
            return None
        path = f"{cwd}/{path}"
    if path.startswith(HOME):
        rest = posixpath.normpath("/" + path[1:].lstrip("/")) if "/.." not in path else None
        if rest is not None:
            return HOME if rest == "/" else HOME + rest
        path = (home or "/home/user") + "/" + path[1:]
    if path.startswith("//"):  # POSIX lets exactly two slashes mean something else; here they mean the root
        path = "/" + path.lstrip("/")
    path = posixpath.normpath(path)
    if home and home != "/" and (path == home or path.startswith(home + "/")):
        return HOME + path[len(home) :]
    return path


def classify(word: str, cwd: str | None = None, home: str | None = None) -> Target:
    """What deleting or overwriting `word` would hit."""
    path = resolve(word, cwd, home)
    if path is None:
        return Target.UNKNOWN
    if GLOB in path:
        # `/*` hits everything in `/`; `/usr/lib*` hits something in `/usr`.
        before = path[: path.index(GLOB)]
        parent = before.rpartition("/")[0] or ("/" if before.startswith("/") else HOME)
        exact = path[len(parent) :].strip("/").strip(GLOB) in ("", ".")
        kind = classify(parent, None, home)
        if parent == "/" and not _is_narrow(path):
            return Target.ROOT
        if kind in (Target.SYSTEM, Target.HOME, Target.ROOT):
            return kind if exact or parent == "/" else Target.ORDINARY
        if parent == "/dev" or parent.startswith("/dev/"):
            return Target.DEVICE
        return Target.ORDINARY
    if UNKNOWN in path:
        before = path[: path.index(UNKNOWN)]
        return Target.DEVICE if before.startswith("/dev/") else Target.UNKNOWN
    if path == "/":
        return Target.ROOT
    if path == HOME:
        return Target.HOME
    if path.startswith(("/home/", "/Users/")) and path.count("/") == 2:
        return Target.HOME
    if path == "/root":
        return Target.HOME
    if path in _SINKS or path.startswith(_SINK_PREFIXES):
        return Target.SINK
    if path in _SYSTEM:
        return Target.SYSTEM
    if path.startswith("/dev/"):
        return Target.DEVICE
    return Target.ORDINARY


def _is_narrow(path: str) -> bool:
    """`/tmp*` or `/foo*/bar`: a glob at the top that cannot reach the system folders."""
    first = path.strip("/").split("/")[0]
    prefix = first.partition(GLOB)[0]
    if "/" in path.strip("/"):
        return bool(prefix) or not any(part.strip(GLOB) == "" for part in path.strip("/").split("/"))
    return bool(prefix) and not any(known.startswith("/" + prefix) for known in _SYSTEM)
