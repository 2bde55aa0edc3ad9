"""Is a process the owner's own, or was it started by wsh? The one predicate that every door asks.

Not the owner's is a process that descends from a keeper; one that carries, or whose ancestor carries, the keeper's mark (a soft or
hard limit of 2^50 or more, see `wsh.process.keeper.tree.mark`); and one whose RLIMIT_RTTIME is finite and unlike the server's
own, since a mark can be lowered but not taken away. What cannot be told is not the owner's. Standard library only.
"""

from __future__ import annotations

import os
import resource
import select
import struct
from _socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET
from _socket import socket as Socket

from wsh.wire.frozen import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:  # `wsh token` imports this, and is a short command
    from typing import TypeAlias

    Folder: TypeAlias = str | os.PathLike[str]

Limit: TypeAlias = tuple[int | None, int | None]
"""Soft and hard value of a resource limit; None is unlimited."""
MARK_BASE = 1 << 50
SO_PEERPIDFD = 77

_PR_SET_DUMPABLE = 4
_MOST_ANCESTORS = 256
_TRIES = 16
_MARKED = ("Max realtime timeout", "Max file locks")
_KEEPER = b"/process/keeper/main.py"


@frozen
class Ancestor:
    """A process as /proc showed it: who it is, who its parent is, and what it carries."""

    pid: int
    parent: int
    started: str
    rttime: Limit
    is_marked: bool
    is_keeper: bool


class _Gone(Exception):
    """A process ended while we looked."""


class _Hidden(Exception):
    """/proc does not show this process to us (hidepid)."""


def hide_memory() -> None:
    """No debugger of the same user reads this process, and nothing of it is written to a core file."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def own_limit() -> Limit:
    """The RLIMIT_RTTIME of this process."""
    soft, hard = resource.getrlimit(getattr(resource, "RLIMIT_RTTIME", 15))
    return _finite(soft), _finite(hard)


def why_not_owner(pid: int, own: Limit, proc: Folder = "/proc") -> str | None:
    """Why process `pid` is not the owner's, as the rest of a sentence that begins with "it"; None if it is.

    `own` is the limit of the server that asks. The caller pins `pid` by a pidfd, see `find_peer_fault`.
    """
    for _ in range(_TRIES):
        try:
            return _judge(pid, own, proc)
        except _Gone:
            if not os.path.exists(f"{os.fspath(proc)}/{pid}"):
                return "has ended"
        except _Hidden:
            break
    return "cannot be traced to its ancestors"


def find_peer_fault(sock: Socket, own: Limit) -> str | None:
    """`why_not_owner` for the process that connected a unix socket, decided now and for good.

    The pidfd is taken before the look and asked after it, so what was seen belongs to that process and to no later one of
    the same number.
    """
    pid = peer_pid(sock)
    if pid <= 0:
        return "is in a process namespace that cannot be seen from here"
    try:
        pidfd = _open_peer(sock, pid)
    except OSError:
        return "has ended"
    try:
        fault = why_not_owner(pid, own)
        return "has ended" if fault is None and _has_ended(pidfd) else fault
    finally:
        os.close(pidfd)


def _has_ended(pidfd: int) -> bool:
    # `select` would know descriptors below 1,024 only, and a server has two of each session.
    asked = select.poll()
    asked.register(pidfd, select.POLLIN)
    return bool(asked.poll(0))


def peer_pid(sock: Socket) -> int:
    """The process that connected, as the kernel noted it then."""
    raw = sock.getsockopt(SOL_SOCKET, SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", raw)[0])


def find_own_fault(server: Folder | None) -> str | None:
    """`why_not_owner` for this very process, for commands that change files of the owner's without a server.

    The limit is compared with that of the server that listens on `server`, if one does, else with that of the program that
    opened this terminal (the parent of the session's leader).
    """
    try:
        seen = os.readlink("/proc/self")
    except OSError:
        return "cannot be traced to its ancestors"
    if seen != str(os.getpid()):
        # Our number is another process's there: its ancestors, not ours, would be looked at.
        return "is in a process namespace that /proc does not show"
    reference = _server_limit(server) if server is not None else None
    if reference is None:
        try:
            reference = _read(_read(os.getsid(0), "/proc").parent, "/proc").rttime
        except (_Gone, _Hidden, OSError):
            reference = (None, None)
    return why_not_owner(os.getpid(), reference)


def _server_limit(path: Folder) -> Limit | None:
    sock = Socket(AF_UNIX, SOCK_STREAM)
    try:
        sock.settimeout(2.0)
        sock.connect(os.fspath(path))
        return _read(peer_pid(sock), "/proc").rttime
    except (OSError, _Gone, _Hidden):
        return None
    finally:
        sock.close()


def _open_peer(sock: Socket, pid: int) -> int:
    try:
        # The kernel's own handle of the process that connected, from 6.5 on.
        return sock.getsockopt(SOL_SOCKET, SO_PEERPIDFD)
    except OSError:
        return os.pidfd_open(pid)


def _judge(pid: int, own: Limit, proc: Folder) -> str | None:
    line = [_read(pid, proc)]
    soft, hard = line[0].rttime
    if any(value is not None and value < MARK_BASE and value not in own for value in (soft, hard)):
        return f"has a limit on realtime (RLIMIT_RTTIME {_say(soft)}, {_say(hard)}) unlike the server's ({_say(own[0])}, {_say(own[1])})"
    while True:
        last = line[-1]
        if last.is_keeper or last.is_marked:
            return "was started by wsh"
        if last.parent <= 0 or last.parent == last.pid:
            break
        if len(line) == _MOST_ANCESTORS:
            return f"has more than {_MOST_ANCESTORS} ancestors"
        try:
            line.append(_read(last.parent, proc))
        except _Gone:
            # Its child has another parent by now; one that still names it cannot see it: another user's, with hidepid.
            if _read(last.pid, proc) != last:
                raise
            break
        except _Hidden:
            break
    # The same line twice: nobody in it ended, and no number was used again, while we climbed.
    if any(_read(each.pid, proc) != each for each in line):
        raise _Gone
    return None


def _read(pid: int, proc: Folder) -> Ancestor:
    folder = f"{os.fspath(proc)}/{pid}"
    try:
        fields = _read_bytes(f"{folder}/stat").decode(errors="replace").rpartition(")")[2].split()
        limits = _read_bytes(f"{folder}/limits").decode(errors="replace")
        words = _read_bytes(f"{folder}/cmdline").split(b"\0")
        found = [_limit(limits, name) for name in _MARKED]
        return Ancestor(
            pid,
            int(fields[1]),
            fields[19],
            found[0],
            any(value is not None and value >= MARK_BASE for limit in found for value in limit),
            words[1:3] == [b"-I", b"-S"] and len(words) > 3 and words[3].endswith(_KEEPER),
        )
    except (FileNotFoundError, ProcessLookupError):
        raise _Gone from None
    except (OSError, ValueError, IndexError):
        raise _Hidden from None


def _read_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _limit(limits: str, name: str) -> Limit:
    for line in limits.splitlines():
        if line.startswith(name):
            soft, hard = line[len(name) :].split()[:2]
            return _parse(soft), _parse(hard)
    raise ValueError(name)


def _parse(value: str) -> int | None:
    return None if value == "unlimited" else int(value)


def _finite(value: int) -> int | None:
    return None if value in (resource.RLIM_INFINITY, -1) else value


def _say(value: int | None) -> str:
    return "unlimited" if value is None else str(value)
