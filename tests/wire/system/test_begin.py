"""A coroutine that is begun at once: over if it never waits, else carried on by a task as any other."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from wsh.wire.system.begin import begin

word: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="none")


async def test_what_never_waits_is_over_at_once() -> None:
    async def answer() -> int:
        return 7

    async def fail() -> None:
        raise ValueError("no")

    async def give_up() -> None:
        raise asyncio.CancelledError("enough")

    over = begin(answer())
    assert over.done() and over.result() == 7
    failed = begin(fail())
    assert failed.done() and isinstance(failed.exception(), ValueError)
    assert begin(give_up()).cancelled()
    await asyncio.sleep(0)


async def test_what_waits_goes_on_in_one_task_with_one_context() -> None:
    seen: list[object] = []

    async def work() -> str:
        seen.append(asyncio.current_task())
        word.set("mine")
        async with asyncio.timeout(30):
            await asyncio.sleep(0)
            await asyncio.sleep(0.001)
        seen.append(asyncio.current_task())
        return word.get()

    here = asyncio.current_task()
    task = begin(work())
    assert not task.done() and asyncio.current_task() is here
    assert await task == "mine"
    assert seen == [task, task] and word.get() == "none"


async def test_a_time_limit_that_was_entered_in_the_first_step_ends_the_wait() -> None:
    async def work() -> None:
        async with asyncio.timeout(0.001):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await begin(work())


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_a_task_that_is_cancelled_cleans_up_whenever_that_is(turns: int) -> None:
    done: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            done.append("cleaned up")
            raise

    task = begin(work())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["cleaned up"]


async def test_a_first_step_within_another_that_is_begun() -> None:
    async def inner() -> object:
        found = asyncio.current_task()
        await asyncio.sleep(0)
        return found is asyncio.current_task()

    async def outer() -> object:
        task = begin(inner())
        assert asyncio.current_task() is not task
        return await task

    assert await begin(outer()) is True


@pytest.mark.parametrize("turns", [0, 1])
async def test_what_a_cancelled_task_waits_for_is_cancelled_too(turns: int) -> None:
    inner = asyncio.ensure_future(asyncio.Event().wait())

    async def work() -> None:
        await inner

    task = begin(work())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert inner.cancelled()
