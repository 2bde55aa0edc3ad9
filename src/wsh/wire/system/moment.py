"""A moment whose age can be told although somebody sets the clock on the wall meanwhile.

As long as the machine runs, its own count of seconds tells the age, and that count no one can set. Across a restart of the
machine only the wall clock is left. Standard library only.
"""

from __future__ import annotations

import time

from wsh.wire.frozen import frozen


@frozen
class Moment:
    wall: float
    """Seconds since the epoch."""
    boot: str = ""
    """Which run of the machine it was; empty if that is not known."""
    up: float = 0.0
    """Seconds since that run began, with those it slept."""

    def age(self, now: Moment) -> float:
        """Seconds from here to `now`; less than 0 only where the wall clock has to be asked and was set back."""
        if self.boot and self.boot == now.boot:
            return now.up - self.up
        return now.wall - self.wall


_boot: str | None = None


def read_moment() -> Moment:
    global _boot
    if _boot is None:
        _boot = _read_boot()
    return Moment(time.time(), _boot, time.clock_gettime(time.CLOCK_BOOTTIME))


def _read_boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
