"""Which process belongs to which child: the mark that every descendant inherits, and a census of marks.

The mark is RLIMIT_RTTIME = 2^50 + a number that holds a random part of this keeper and the child's id. It survives
setsid, double forks, `env -i`, closed descriptors and a changed user, and `/proc/PID/limits` shows it to everybody.
A program that changes that limit itself escapes; the documentation says so.
"""

from __future__ import annotations

import os
import resource
import time

from wsh.process.keeper import layout
from wsh.process.keeper.loop import Loop, complain
from wsh.process.keeper.spawn import RLIMIT_RTTIME

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable


ID_BITS = 24
_NONCE_BITS = 24
_LINE = b"Max realtime timeout"
_BUDGET_S = 0.001


def choose_base() -> int:
    """The mark of child 0 of a new keeper. Below our own limit, if we run inside another keeper's session."""
    room = 1 << _NONCE_BITS
    hard = resource.getrlimit(RLIMIT_RTTIME)[1]
    if hard != resource.RLIM_INFINITY:
        room = min(room, max(2, (hard - layout.MARK_BASE) >> ID_BITS))
    nonce = 1 + int.from_bytes(os.urandom(8), "little") % (room - 1)
    return layout.MARK_BASE + (nonce << ID_BITS)


def read_mark(pid: int) -> int | None:
    """The realtime limit of a process, 0 if it has none, None if the process is gone."""
    try:
        fd = os.open(f"/proc/{pid}/limits", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)
    at = data.rfind(_LINE)
    if at < 0:
        return None
    soft = data[at + len(_LINE) :].split(None, 1)[0]
    return int(soft) if soft.isdigit() else 0


def read_stat(pid: int) -> list[bytes] | None:
    """Fields of /proc/PID/stat from `state` on: [state, ppid, pgrp, session, tty, tpgid, …]."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)
    return data[data.rfind(b")") + 2 :].split()


def is_alive(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat[0] not in (b"Z", b"X", b"x")


class Count:
    """One walk's result: live processes by child. `sure` is False if a process vanished during it: it may have
    forked unseen, so "nobody left" must be asked again."""

    __slots__ = ("alive", "sure")

    def __init__(self) -> None:
        self.alive: dict[int, list[int]] = {}
        self.sure = True


class Census:
    """Walks /proc in small steps between the turns of the pump, once for all that ask.

    The answer comes from a walk that began after the question.
    """

    def __init__(self, loop: Loop, base: int, leaders: dict[int, int]) -> None:
        self._loop = loop
        self.base = base
        self._leaders = leaders  # pid to child id, of leaders that are not reaped
        self._waiting: list[Callable[[Count], None]] = []
        self._asked: list[Callable[[Count], None]] = []
        self._todo: list[int] = []
        self._count = Count()
        self._walking = False

    def ask(self, answer: Callable[[Count], None]) -> None:
        self._waiting.append(answer)
        if not self._walking:
            self._begin()

    def carries(self, pid: int, child: int) -> bool:
        """Whether that process belongs to that child now."""
        return self._leaders.get(pid) == child or self._id_of(read_mark(pid)) == child

    def _id_of(self, mark: int | None) -> int | None:
        if mark is None or not self.base <= mark < self.base + (1 << ID_BITS):
            return None
        return mark - self.base

    def _begin(self) -> None:
        self._walking = True
        self._asked, self._waiting = self._waiting, []
        self._todo = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        self._count = Count()
        self._loop.add_step(self._step)

    def _step(self) -> bool:
        until = time.monotonic() + _BUDGET_S
        while self._todo:
            self._visit(self._todo.pop())
            if time.monotonic() > until:
                return True
        asked, count = self._asked, self._count
        self._walking = False
        if self._waiting:
            self._begin()
        for answer in asked:
            try:
                answer(count)
            except Exception:
                complain("the answer of a census")
        return False

    def _visit(self, pid: int) -> None:
        child = self._leaders.get(pid)
        if child is None:
            mark = read_mark(pid)
            if mark is None:
                self._count.sure = False
            child = self._id_of(mark)
        if child is None:
            return
        if is_alive(pid):
            self._count.alive.setdefault(child, []).append(pid)
        else:
            self._count.sure = False
