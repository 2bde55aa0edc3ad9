"""A task that swallows a cancellation is ended all the same."""

from __future__ import annotations

import asyncio

from wsh.host.ending import end_tasks


async def test_a_swallowed_cancellation_is_said_again_and_problems_are_told() -> None:
    async def stubborn() -> None:
        for _ in range(2):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
        raise ValueError("its own")

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    (problem,) = await end_tasks([task])
    assert task.done() and str(problem) == "its own"
    assert await end_tasks([]) == []
