"""One thread, one epoll, some timers."""

from __future__ import annotations

import heapq
import select
import sys
import time

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[int], None]


_MAX_FAILURES = 100


def complain(where: str) -> None:
    """Put the exception being handled into the log. The keeper goes on: terminals depend on it, so this never raises."""
    try:
        sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} keeper: {where} failed: {sys.exc_info()[1]!r}\n")
        import traceback  # late, for the sake of memory; needs a descriptor, and there may be none left

        traceback.print_exc()
    except Exception:
        pass


class Timer:
    __slots__ = ("at", "call")

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Loop:
    """Runs handlers of ready descriptors, due timers, then idle steps. `stop` ends it."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._sequence = 0
        self._steps: list[Callable[[], bool]] = []
        self._running = True
        self.ready = 0  # descriptors that this turn serves
        self._failures: dict[int, int] = {}

    def watch(self, fd: int, handler: Handler, events: int = select.EPOLLIN) -> None:
        if fd in self._handlers:
            self.epoll.modify(fd, events)
        else:
            self.epoll.register(fd, events)
        self._handlers[fd] = handler

    def unwatch(self, fd: int) -> None:
        if self._handlers.pop(fd, None) is not None:
            self.epoll.unregister(fd)

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        self._sequence += 1
        timer = Timer(time.monotonic() + seconds, call)
        heapq.heappush(self._timers, (timer.at, self._sequence, timer))
        return timer

    def add_step(self, step: Callable[[], bool]) -> None:
        """Call `step` once a turn, between descriptors, until it returns False."""
        self._steps.append(step)

    def stop(self) -> None:
        self._running = False

    def run(self) -> None:
        handlers = self._handlers
        poll = self.epoll.poll
        fd = -1
        while self._running:
            try:
                ready = poll(self._timeout(), 256)
                self.ready = len(ready)
                for fd, events in ready:
                    handler = handlers.get(fd)
                    if handler is not None:  # an earlier handler of this turn may have closed it
                        handler(events)
                if self._timers:
                    self._run_timers()
                if self._steps:
                    self._run_steps()
            except Exception:
                self._failed(fd)

    def _failed(self, fd: int) -> None:
        """One thing went wrong: say so, go on, and stop listening to a descriptor that fails again and again."""
        complain(f"descriptor {fd}")
        self._failures[fd] = self._failures.get(fd, 0) + 1
        if self._failures[fd] >= _MAX_FAILURES:
            del self._failures[fd]
            self.unwatch(fd)

    def _run_steps(self) -> None:
        steps, self._steps = self._steps, []
        for step in steps:
            if step():
                self._steps.append(step)

    def _timeout(self) -> float:
        if self._steps:
            return 0
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return -1
        return max(0.0, self._timers[0][0] - time.monotonic())

    def _run_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            call, timer.call = timer.call, None
            if call is not None:
                call()
