"""Which process belongs to which child: the mark that every descendant inherits, its ancestors, and a census of both.

The mark is 2^50 + a number that holds a random part of this keeper and the child's id. It is the soft and the hard
value of two limits, RLIMIT_RTTIME and RLIMIT_LOCKS, survives setsid, double forks, `env -i`, closed descriptors and a changed user, and
`/proc/PID/limits` shows it to everybody. A process that lowered all four belongs to the child that it descends from, also where
it lowered them to the mark of an earlier child.
"""

from __future__ import annotations

import os
import resource
import time
from itertools import pairwise

from wsh.process.keeper import layout
from wsh.process.keeper.loop import Loop, complain
from wsh.process.keeper.start.spawn import RLIMIT_RTTIME

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable


ID_BITS = 24
_NONCE_BITS = 24
_LINES = (b"Max realtime timeout", b"Max file locks")
_MOST_ANCESTORS = 256
_MOST_REMEMBERED = 4096
NOBODY = 0
"""Stands for the child of a process that descends from the keeper and bears no trace of whose it is."""
_BUDGET_S = 0.001
_AGAIN_S = 0.05


def choose_base() -> int:
    """The mark of child 0 of a new keeper. Below our own limit, if we run inside another keeper's session."""
    room = 1 << _NONCE_BITS
    hard = resource.getrlimit(RLIMIT_RTTIME)[1]
    if hard != resource.RLIM_INFINITY:
        room = min(room, max(2, (hard - layout.MARK_BASE) >> ID_BITS))
    nonce = 1 + int.from_bytes(os.urandom(8), "little") % (room - 1)
    return layout.MARK_BASE + (nonce << ID_BITS)


def read_marks(pid: int) -> tuple[int, ...] | None:
    """The values that may be a mark, RLIMIT_RTTIME first, 0 for unlimited; None if the process is gone."""
    data = _read(f"/proc/{pid}/limits")
    if data is None:
        return None
    found = []
    for line in _LINES:
        at = data.rfind(line)
        if at < 0:
            return None
        found += [int(word) if word.isdigit() else 0 for word in data[at + len(line) :].split(None, 2)[:2]]
    return tuple(found)


def read_mark(pid: int) -> int | None:
    """The mark of a process, 0 if it has none, None if the process is gone."""
    marks = read_marks(pid)
    return None if marks is None else max((mark for mark in marks if mark >= layout.MARK_BASE), default=0)


def read_stat(pid: int) -> list[bytes] | None:
    """Fields of /proc/PID/stat from `state` on: [state, ppid, pgrp, session, tty, tpgid, …]."""
    data = _read(f"/proc/{pid}/stat")
    return None if data is None else data[data.rfind(b")") + 2 :].split()


def _read_start(pid: int) -> bytes | None:
    """When a process began, in the kernel's ticks; None if it is gone."""
    data = _read(f"/proc/{pid}/stat")
    return None if data is None else data[data.rfind(b")") + 2 :].split(None, 20)[19]


def _read(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)


def is_alive(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat[0] not in (b"Z", b"X", b"x")


class Count:
    """One walk's result: live processes by child. `sure` is False if a process vanished during it: it may have
    forked unseen, so "nobody left" must be asked again. `traced` says whether descendants without a mark are among them."""

    __slots__ = ("alive", "sure", "traced")

    def __init__(self, traced: bool) -> None:
        self.alive: dict[int, list[int]] = {}
        self.sure = True
        self.traced = traced


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
        self._count = Count(False)
        self._tracing = False
        self._found: dict[int, int] = {}  # pid to child id, of this walk
        self._strangers: dict[int, list[bytes]] = {}  # without a mark of ours: the fields of their stat
        self._marked: dict[int, tuple[int, int, bytes]] = {}  # with one, no leaders: parent, session and start
        self._known: dict[tuple[int, bytes], int] = {}  # by pid and start: descendants without a mark, seen before
        self._outside: dict[int, bytes] = {}
        """Processes that were never ours, with their start. They stay outside, since only descendants of ours come to us: one look at
        the start is enough for them, and most of a machine's processes are such."""
        self._still_outside: dict[int, bytes] = {}  # of this walk
        self._walking = False

    def ask(self, answer: Callable[[Count], None], *, trace: bool = True) -> None:
        """Call `answer` with a count. Without `trace` it holds marked processes only, and takes half the time."""
        self._waiting.append(answer)
        self._tracing = self._tracing or trace
        if not self._walking:
            self._begin()

    def carries(self, pid: int, child: int) -> bool:
        """Whether that process belongs to that child now."""
        return self._id_of(read_marks(pid)) == child or self._trace(pid) == child

    def is_outside(self, pid: int) -> bool:
        """Whether that process lives and descends from no child of ours."""
        return self._trace(pid) is None and is_alive(pid)

    def remember(self, leader: int, child: int) -> None:
        """Note the descendants of a leader that is about to be signalled: what has no mark loses its trace with it."""
        until = time.monotonic() + _BUDGET_S * 5
        todo = [leader]
        while todo and time.monotonic() < until:
            for pid in _children_of(todo.pop()):
                todo.append(pid)
                if self._id_of(read_marks(pid)) != child:
                    self._note(pid, _read_start(pid), child)

    def _id_of(self, marks: tuple[int, ...] | None) -> int | None:
        for mark in marks or ():
            if self.base <= mark < self.base + (1 << ID_BITS):
                return mark - self.base
        return None

    def _note(self, pid: int, start: bytes | None, child: int) -> None:
        if start is not None and len(self._known) < _MOST_REMEMBERED:
            self._known[pid, start] = child

    def _trace(self, pid: int) -> int | None:
        """The child that a process belongs to: by the nearest ancestor that is known, else by the nearest mark."""
        said = None
        for _ in range(_MOST_ANCESTORS):
            child = self._leaders.get(pid)
            if child is not None:
                return child
            stat = read_stat(pid)
            if stat is None:
                break
            child = self._find_known(pid, int(stat[3]), stat[19], self._known)
            if child is not None:
                return child
            if said is None:
                said = self._id_of(read_marks(pid))
            pid = int(stat[1])
            if pid == os.getpid():
                return NOBODY if said is None else said
            if pid <= 1:
                break
        return said

    def _find_known(self, pid: int, session: int, start: bytes, known: dict[tuple[int, bytes], int]) -> int | None:
        """By what was seen before, or by the leader of its session, which nobody can join."""
        child = known.get((pid, start))
        return self._leaders.get(session) if child is None else child

    def _begin(self) -> None:
        self._walking = True
        try:
            self._todo = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        except OSError:  # no descriptor is free just now
            self._loop.after(_AGAIN_S, self._begin)
            return
        self._asked, self._waiting = self._waiting, []
        self._count = Count(self._tracing)
        self._tracing = False
        self._found.clear()
        self._strangers.clear()
        self._marked.clear()
        self._still_outside = {}
        self._loop.add_step(self._step)

    def _step(self) -> bool:
        until = time.monotonic() + _BUDGET_S
        while self._todo:
            self._visit(self._todo.pop())
            if time.monotonic() > until:
                return True
        if self._count.traced:
            self._place_strangers()
        self._outside = self._still_outside
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
            start = self._outside.get(pid)
            if start is not None and _read_start(pid) == start:
                self._still_outside[pid] = start
                return
            marks = read_marks(pid)
            if marks is None:
                self._count.sure = False
                return
            child = self._id_of(marks)
        if child is None and not self._count.traced:
            return
        stat = read_stat(pid)
        if stat is None or stat[0] in (b"Z", b"X", b"x"):
            if child is not None or stat is None:
                self._count.sure = False
            if stat is None:
                return
        elif child is not None:
            self._count.alive.setdefault(child, []).append(pid)
        if child is None:
            self._strangers[pid] = stat
            return
        self._found[pid] = child
        if self._count.traced and pid not in self._leaders:
            self._marked[pid] = int(stat[1]), int(stat[3]), stat[19]

    def _place_strangers(self) -> None:
        """Give each descendant without a mark to the child of its nearest ancestor that has one."""
        me = os.getpid()
        known, self._known = self._known, {}
        self._correct_marks(known)
        for pid, stat in self._strangers.items():
            line = [pid]
            child: int | None = None
            fields: list[bytes] | None = stat
            while fields is not None and len(line) <= _MOST_ANCESTORS:
                child = self._find_known(line[-1], int(fields[3]), fields[19], known)
                parent = int(fields[1])
                if child is None:
                    child = self._found.get(parent)
                if child is None and parent == me:
                    child = NOBODY
                if child is not None:
                    break
                line.append(parent)
                fields = self._strangers.get(parent)
            if child is None:
                # The last of the line is the first process of the machine, or stands below one that is outside.
                if (line[-1] <= 1 or line[-1] in self._still_outside) and self._are_related(line):
                    self._still_outside[pid] = stat[19]
                continue
            for each in line:
                self._found[each] = child
            if child != NOBODY:
                self._note(pid, stat[19], child)
            if stat[0] not in (b"Z", b"X", b"x"):
                self._count.alive.setdefault(child, []).append(pid)
            elif child != NOBODY:
                self._count.sure = False

    def _correct_marks(self, known: dict[tuple[int, bytes], int]) -> None:
        """A mark that is another than the parent's was put on: whom the parent belongs to, it belongs to as well."""
        for _ in range(_MOST_ANCESTORS):  # once, unless there is one: then those below it follow
            changed = False
            for pid, (parent, session, start) in self._marked.items():
                said = self._found[pid]
                child = self._find_known(pid, session, start, known)
                if child is None:
                    child = self._found.get(parent, said)
                if child == said:
                    continue
                changed = True
                self._found[pid] = child
                self._note(pid, start, child)
                if pid in self._count.alive.get(said, ()):
                    self._count.alive[said].remove(pid)
                    self._count.alive.setdefault(child, []).append(pid)
            if not changed:
                break
        self._marked.clear()

    def _are_related(self, line: list[int]) -> bool:
        """Whether each in a line began after the next: a number that was used again is no parent."""
        starts = [int(self._strangers[pid][19]) for pid in line[:-1]]
        if line[-1] > 1:
            starts.append(int(self._still_outside[line[-1]]))
        return all(start >= before for start, before in pairwise(starts))


def _children_of(pid: int) -> list[int]:
    """Direct children of all threads of a process."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            fd = os.open(f"/proc/{pid}/task/{thread}/children", os.O_RDONLY | os.O_CLOEXEC)
            try:
                found += map(int, os.read(fd, 65_536).split())
            finally:
                os.close(fd)
    except OSError:
        pass
    return found
