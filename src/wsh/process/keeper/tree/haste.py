"""The processor comes to us first while a tree that wants all of it is ended.

Each session may be a share of its own to the kernel, so a tree of three hundred sessions leaves a keeper one three-hundredth: the walk that finds them
took six seconds, and they filled each place that a dead one left. Root may ask for real time; where we may not, killing goes on at
the pace that the tree leaves.
"""

from __future__ import annotations

import os
import resource

_LEAST_US = 60_000_000  # a process that is allowed less of real time without a pause is killed when that is used up
_CROWD = 32  # so many processes that want the processor, and we ask for it before the first look
_ORDINARY = os.sched_param(0)
_FIRST = os.sched_param(1)


class Haste:
    """Of one keeper. Several may need it at once; it ends with the last."""

    def __init__(self, limit_us: int) -> None:
        """`limit_us` is the keeper's own RLIMIT_RTTIME."""
        self._may = limit_us == resource.RLIM_INFINITY or limit_us >= _LEAST_US
        self._needed_by: set[object] = set()

    def begin(self, job: object) -> None:
        """Until `end` of the same. Children and threads that are started meanwhile do not inherit it."""
        if not self._may:
            return
        if not self._needed_by:
            try:
                os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, _FIRST)
            except OSError:
                return
        self._needed_by.add(job)

    def end(self, job: object) -> None:
        if job in self._needed_by:
            self._needed_by.remove(job)
            if not self._needed_by:
                os.sched_setscheduler(0, os.SCHED_OTHER, _ORDINARY)


def is_crowded() -> bool:
    """Whether many processes want the processor now."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            return int(file.read(64).split()[3].split(b"/")[0]) > _CROWD
    except (OSError, ValueError, IndexError):
        return False
