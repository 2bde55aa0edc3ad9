"""A second way to end a tree that forks faster than it can be killed: move it into a cgroup and kill that whole.

Used only where a version 2 cgroup can be written, and only after plain KILLs have not been enough: moving a process takes
the kernel about ten milliseconds, too much for every spawn. Runs in a thread of its own for the same reason.
"""

from __future__ import annotations

import _thread
import os

from wsh.process.keeper.loop import complain

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable


def find_home() -> str | None:
    """The cgroup we live in, if we may make others in it."""
    try:
        with open("/proc/self/mountinfo") as mounts:
            rows = [line.split() for line in mounts]
        with open("/proc/self/cgroup") as groups:
            ours = next(line.rstrip("\n")[3:] for line in groups if line.startswith("0::"))
    except (OSError, StopIteration):
        return None
    for row in rows:
        kind = row[row.index("-") + 1]
        if kind == "cgroup2":
            home = (row[4] + ours).rstrip("/")
            if os.access(home, os.W_OK) and os.access(home + "/cgroup.procs", os.W_OK):
                return home
    return None


def kill_in_thread(home: str, name: str, pids: list[int], belongs: Callable[[int], bool]) -> None:
    """Kill `pids` and whatever they fork meanwhile. `belongs` says whether a process carries the mark."""
    _thread.start_new_thread(_kill, (home, f"{home}/{name}", pids, belongs))


def _kill(home: str, group: str, pids: list[int], belongs: Callable[[int], bool]) -> None:
    try:
        os.makedirs(group, exist_ok=True)
        for pid in pids:
            if belongs(pid):
                _write(group + "/cgroup.procs", str(pid))
        with open(group + "/cgroup.procs") as members:
            strangers = [pid for pid in map(int, members) if not belongs(pid)]
        for pid in strangers:  # a pid that was reused between the look and the move: back it goes
            _write(home + "/cgroup.procs", str(pid))
        _write(group + "/cgroup.kill", "1")
    except OSError:
        complain("killing by cgroup")


def remove(home: str, name: str) -> None:
    """Take the cgroup away; it may never have been made, and the dead leave it only when reaped."""
    try:
        os.rmdir(f"{home}/{name}")
    except OSError:
        pass


def _write(path: str, text: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # kernels before 5.14 have no cgroup.kill
    try:
        os.write(fd, text.encode())
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)
