"""Cleanup that finishes although its task is being cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

log = logging.getLogger("wsh.contract")
T = TypeVar("T")


async def finish_cleanup(work: Awaitable[T]) -> T | None:
    """Wait for `work` whatever is cancelled meanwhile; a failure of it is logged. The caller raises its own end."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue
        except Exception:
            break
    if task.cancelled():
        return None
    problem = task.exception()
    if problem is not None:
        log.error("cleaning up after a cancelled call failed", exc_info=problem)
        return None
    return task.result()
