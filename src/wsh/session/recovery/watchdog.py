"""A visit to the terminal engine that does not come back is a death too: the process is ended, and its note says why.

The library lets other threads run while it works, so a thread of ours can count. It counts processor time of the
thread that visits, not the clock: a busy machine, a debugger or a suspended laptop is no fault of the engine. While no
terminal is fed or read the thread sleeps without a wake-up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

EXIT_STATUS = 86
_LOOKS_PER_LIMIT = 4
_IDLE_FACTOR = 10
"""A visit that burns no processor time (it waits for something that cannot come) may last so many limits."""


class Watchdog:
    """Watches the thread that makes it. `begin` is called by notes, a few times for each piece of output."""

    __slots__ = ("_asleep", "_clock", "_closed", "_limit_s", "_on_stuck", "_thread", "_wake", "busy", "serial")

    def __init__(self, limit_s: float, on_stuck: Callable[[], None]) -> None:
        self.busy = False
        self.serial = 0
        self._limit_s = limit_s
        self._on_stuck = on_stuck
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._wake = threading.Event()
        self._asleep = True
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="engine-watchdog", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        self.busy = True
        self.serial += 1
        if self._asleep:
            self._asleep = False
            self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()
        self._thread.join(5)

    def _run(self) -> None:
        pause = self._limit_s / _LOOKS_PER_LIMIT
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            self._watch(pause)

    def _watch(self, pause: float) -> None:
        """Look until a whole pause passed without a visit."""
        seen, used, looks = -1, 0.0, 0
        while not self._closed:
            serial = self.serial
            if serial != seen:
                seen, used, looks = serial, time.clock_gettime(self._clock), 0
            elif not self.busy:
                self._asleep = True
                if self.serial == serial:  # else a visit began before it could see that we sleep
                    return
                self._asleep = False
                continue
            else:
                looks += 1
                stuck_s = time.clock_gettime(self._clock) - used
                if stuck_s >= self._limit_s or looks >= _LOOKS_PER_LIMIT * _IDLE_FACTOR:
                    log.critical("the terminal engine did not come back for %.1f s of work; the server ends", stuck_s)
                    self._on_stuck()
                    return
            self._wake.wait(pause)
            self._wake.clear()
