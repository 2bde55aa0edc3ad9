"""Ending tasks for sure: a cancellation can be lost.

`asyncio.wait_for` of Python 3.11, and libraries that stand on it, may swallow a cancellation that comes in the moment in which
their own work ends. So a task is cancelled again until it has ended, for a while.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

log = logging.getLogger(__name__)

_AGAIN_S = 0.5
_TIMES = 20


async def end_tasks(tasks: Iterable[asyncio.Task[None]]) -> list[BaseException]:
    """Cancels them, waits for their ends, and returns what they raised. What does not end in ten seconds is left and logged."""
    left = set(tasks)
    done: set[asyncio.Task[None]] = set()
    for _ in range(_TIMES):
        if not left:
            break
        for task in left:
            task.cancel()
        ended, left = await asyncio.wait(left, timeout=_AGAIN_S)
        done |= ended
    for task in left:
        log.warning("a task of a host does not end: %r", task)
    return [problem for task in done if not task.cancelled() and (problem := task.exception()) is not None]
