"""A second way to end a tree that forks faster than it can be killed: move it into a frozen cgroup, where nobody forks, and kill that whole.

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


_PREFIX = "wsh-"
_ROUNDS = 50


def choose_name(child: int) -> str:
    """What the cgroup of a child of this keeper is called."""
    return f"{_PREFIX}{os.getpid()}-{child}"


def kill_in_thread(home: str, name: str, belongs: Callable[[int], bool], done: Callable[[], None]) -> None:
    """Kill all that `belongs` says of that they carry the mark, and whatever they fork meanwhile. `done` is called in that thread."""
    _thread.start_new_thread(_kill, (home, f"{home}/{name}", belongs, done))


def _kill(home: str, group: str, belongs: Callable[[int], bool], done: Callable[[], None]) -> None:
    try:
        os.makedirs(group, exist_ok=True)
        _write(group + "/cgroup.freeze", "1")
        for _ in range(_ROUNDS):  # who was forked before its parent stood still is found in the next round
            inside = _read_members(group)
            outside = [pid for pid in _list_all() if pid not in inside and belongs(pid)]
            for pid in outside:
                _write(group + "/cgroup.procs", str(pid))
            if not outside:
                break
        for pid in _read_members(group):  # a pid that was reused between the look and the move: back it goes
            if not belongs(pid):
                _write(home + "/cgroup.procs", str(pid))
        _write(group + "/cgroup.kill", "1")
        _write(group + "/cgroup.freeze", "0")  # for kernels that cannot kill it whole: the next KILL meets them awake
    except OSError:
        complain("killing by cgroup")
    finally:
        done()


def _read_members(group: str) -> set[int]:
    try:
        with open(group + "/cgroup.procs") as members:
            return set(map(int, members))
    except FileNotFoundError:  # they are dead by now, and the group was taken away
        return set()


def _list_all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def remove(home: str, name: str) -> bool:
    """Take the cgroup away. False while somebody is in it: the dead leave it only when reaped."""
    try:
        os.rmdir(f"{home}/{name}")
    except FileNotFoundError:
        pass  # it was never made
    except OSError:
        return False
    return True


def sweep(home: str) -> None:
    """Take away what this keeper and keepers that are dead have left there, unless a process is in it."""
    try:
        names = os.listdir(home)
    except OSError:
        return
    for name in names:
        keeper = name.split("-")[1] if name.startswith(_PREFIX) else ""
        if keeper.isdigit() and (int(keeper) == os.getpid() or not os.path.exists(f"/proc/{keeper}")):
            remove(home, name)


def _write(path: str, text: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # kernels before 5.14 have no cgroup.kill, before 5.2 no cgroup.freeze
    try:
        os.write(fd, text.encode())
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)
