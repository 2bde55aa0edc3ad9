"""Killing a tree: the only place in wsh that ends a process.

The tree of a child is every process that carries its mark or descends from one that does. HUP, TERM and CONT together; a grace that ends as soon as
nobody is left; KILL until nobody is left. Each signal goes through a pidfd whose process was seen to belong
to the tree *after* the pidfd was opened, so a reused pid is never hit. All of it runs as timers and census answers between the
turns of the pump: killing one tree delays no other session.
"""

from __future__ import annotations

import os
import signal
import time

from wsh.process.keeper.loop import Loop, Timer
from wsh.process.keeper.tree import cgroup
from wsh.process.keeper.tree.haste import Haste, is_crowded
from wsh.process.keeper.tree.mark import Census, Count

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable

    from wsh.wire.json.object import JsonObject


# readline remembers only the last signal it caught, and an interactive shell ignores TERM: HUP must come after TERM,
# or one shell in fifty sits out the whole grace
_POLITE = (signal.SIGTERM, signal.SIGHUP, signal.SIGCONT)
_FORCE = (signal.SIGKILL,)
_STAND = (signal.SIGSTOP,)
_FIRST_LOOK_S = 0.005
_SLOWEST_LOOK_S = 0.1
_FORCE_LIMIT_S = 5.0
_CHASE_LIMIT_S = 30.0  # while each look finds others than those that were killed
_ROUNDS_BEFORE_STOP = 2
_MOST_STOP_ROUNDS = 50
_ROUNDS_BEFORE_CGROUP = 4
_SMALL_TREE = 8
_LARGE_TREE = 64
_FORGET_CGROUP_S = 60.0


class KillJob:
    """One tree on its way out. `done` is called once with the report; `nudge` when a leader or orphan was reaped."""

    def __init__(
        self,
        loop: Loop,
        census: Census,
        child: int,
        leader: int | None,
        front: int | None,
        waits: Callable[[], bool],
        grace_ms: int,
        cgroup_home: str | None,
        haste: Haste,
        done: Callable[[KillJob], None],
    ) -> None:
        """`leader` is the child's first process while it is not reaped, `front` the program that was asked for; `waits` says
        whether that waits for a key."""
        self.child = child
        self._haste = haste
        self._leader = leader
        self._front = front
        self._waits = waits
        self._cgroup_home = cgroup_home
        self._loop = loop
        self._census = census
        self._done = done
        self._began = time.monotonic()
        self._force_at = self._began + grace_ms / 1000
        self._give_up_at = self._force_at + _FORCE_LIMIT_S
        self._asking = False
        self._again = False
        self._trace = True
        self._pause_s = _FIRST_LOOK_S
        self._timer: Timer | None = None
        self._politely: set[int] = set()
        self._forced: set[int] = set()
        self._stopped: set[int] = set()
        self._stop_rounds = 0
        self._refused: dict[int, int] = {}
        self._force_rounds = 0
        self._cgroup_works = False
        self._cgroup_name = cgroup.choose_name(child)
        self.finished = False
        self.report: JsonObject = {}
        if is_crowded():
            haste.begin(self)
        if grace_ms > 0 and leader is not None:
            census.remember(leader, child)
            self._signal_leader(leader)
        self._look()

    def nudge(self) -> None:
        """Something died: look at once."""
        if self.finished:
            return
        if self._asking:
            self._again = True
        else:
            self._look()

    def _signal_leader(self, pid: int) -> None:
        """At once, before any walk: the leader is ours and not reaped, so its pid cannot belong to another."""
        for number in _POLITE:
            try:
                os.kill(pid, number)
            except OSError:
                pass
        self._politely.add(pid)

    def _look(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._asking = True
        self._again = False
        self._census.ask(self._counted, trace=self._trace)

    def _counted(self, count: Count) -> None:
        self._asking = False
        alive = count.alive.get(self.child, [])
        now = time.monotonic()
        if not alive and count.sure:
            if count.traced:
                self._finish([])
            else:
                self._trace = True
                self._look()
            return
        # The first look traces everybody, before parents are gone. Then speed counts, for trees that fork as they die; of a small one
        # the last look is likely the next, and that has to trace.
        self._trace = len(alive) <= _SMALL_TREE
        chased = now >= self._force_at and any(pid not in self._forced for pid in alive)
        if len(alive) > _LARGE_TREE:
            self._haste.begin(self)
        if alive:
            alive.sort(key=lambda pid: (pid != self._leader, pid))  # parents first, before they see their children die
            if now >= self._force_at and self._stop_first(alive):
                pass
            elif now >= self._force_at:
                self._signal(alive, _FORCE, self._forced, again=True)
                self._escalate()
            else:
                self._signal(alive, _POLITE, self._politely, again=False)
                self._remind(alive)
        if now >= self._give_up_at + (_CHASE_LIMIT_S if chased else 0.0):
            self._finish(alive)
        elif self._again or not alive:
            self._look()
        elif chased and self._force_rounds > 1:
            self._timer = self._loop.after(_FIRST_LOOK_S, self._look)
        else:
            pause = self._pause_s if now >= self._force_at else min(self._pause_s, max(0.0, self._force_at - now))
            self._pause_s = min(self._pause_s * 2, _SLOWEST_LOOK_S)
            self._timer = self._loop.after(pause, self._look)

    def _stop_first(self, alive: list[int]) -> bool:
        """Let a tree that forks as it dies stand still first: each one killed would make room for another. False once all of it stands."""
        if self._force_rounds < _ROUNDS_BEFORE_STOP or self._stop_rounds >= _MOST_STOP_ROUNDS:
            self._stop_rounds = 0
            self._stopped.clear()
            return False
        fresh = [pid for pid in alive if pid not in self._stopped]
        self._signal(fresh, _STAND, self._stopped, again=False)
        self._stop_rounds = self._stop_rounds + 1 if fresh else _MOST_STOP_ROUNDS
        return bool(fresh)

    def _escalate(self) -> None:
        """KILL and KILL again was not enough: they fork faster than we walk, or wait in the kernel."""
        self._force_rounds += 1
        if self._force_rounds < _ROUNDS_BEFORE_CGROUP or self._cgroup_home is None:
            return
        if not self._cgroup_works:
            self._cgroup_works = True
            try:
                cgroup.kill_in_thread(self._cgroup_home, self._cgroup_name, self._carries, self._cgroup_done)
            except RuntimeError:  # the tree leaves no room for a thread: the next round may find some
                self._cgroup_works = False

    def _cgroup_done(self) -> None:
        self._cgroup_works = False

    def _carries(self, pid: int) -> bool:
        return self._census.carries(pid, self.child)

    def _remind(self, alive: list[int]) -> None:
        """Say HUP again to a leader that went back to waiting for a key.

        A shell that is just printing its prompt notes the signal and acts on it only after the next key; a program
        that is busy ending is left alone.
        """
        if self._front in alive and self._pause_s > _FIRST_LOOK_S and self._waits():
            self._signal([self._front], (signal.SIGHUP,), self._politely, again=True)

    def _signal(self, pids: list[int], numbers: tuple[int, ...], told: set[int], *, again: bool) -> None:
        for pid in pids:
            if pid in told and not again:
                continue
            try:
                handle = os.pidfd_open(pid)
            except OSError:
                continue
            try:
                if self._census.carries(pid, self.child):
                    for number in numbers:
                        signal.pidfd_send_signal(handle, number)
                    told.add(pid)
            except OSError as problem:
                if problem.errno != 3:  # ESRCH is what we want
                    self._refused[pid] = problem.errno or 0
            finally:
                os.close(handle)

    def _remove_cgroup(self, home: str, pause_s: float = 0.5) -> None:
        if not cgroup.remove(home, self._cgroup_name) and pause_s < _FORGET_CGROUP_S:
            self._loop.after(pause_s, lambda: self._remove_cgroup(home, 2 * pause_s))

    def _finish(self, survivors: list[int]) -> None:
        self.finished = True
        self._haste.end(self)
        if self._cgroup_home is not None and self._force_rounds >= _ROUNDS_BEFORE_CGROUP:
            self._remove_cgroup(self._cgroup_home)
        self.report = {
            "survivors": [[pid, self._refused.get(pid, 0)] for pid in survivors],
            "signalled": len(self._politely | self._forced),
            "forced": sorted(self._forced)[:1000],
            "duration_ms": round((time.monotonic() - self._began) * 1000, 3),
        }
        self._done(self)
