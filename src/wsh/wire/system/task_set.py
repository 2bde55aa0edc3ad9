"""Tasks that somebody started and owns: kept from being forgotten, waited for or ended together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

log = logging.getLogger(__name__)


class TaskSet:
    """`expected` are errors that somebody else reports; any other error of a task is logged."""

    def __init__(self, *expected: type[Exception]) -> None:
        self._expected = expected
        self._tasks: dict[asyncio.Task[None], None] = {}  # not a set, which takes three times as much where it is empty

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks[task] = None
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, self._expected):
            log.error("%s failed", task.get_coro(), exc_info=error)

    def cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    async def wait(self) -> None:
        """Until all have ended, those included that are started meanwhile."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def aclose(self) -> None:
        """End them all, those included that are started meanwhile."""
        while self._tasks:
            self.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
