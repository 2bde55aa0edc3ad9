"""Values that are ready a moment after the server is; callers wait for them."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from wsh.wire.error import ShuttingDown

Thing = TypeVar("Thing")


class Deferred(Generic[Thing]):
    """A value that comes once, or never if the server ends before.

    While it cannot be made, callers get the reason; a later try may still set it.
    """

    def __init__(self) -> None:
        self._future: asyncio.Future[Thing] = asyncio.get_running_loop().create_future()

    def set(self, thing: Thing) -> None:
        self._renew()
        self._future.set_result(thing)

    def fail(self, problem: BaseException) -> None:
        """Tell all who wait, and all who ask before the next `set` or `fail`."""
        self._renew()
        self._future.set_exception(problem)
        self._future.exception()

    def _renew(self) -> None:
        if self._future.done():
            self._future = asyncio.get_running_loop().create_future()

    def close(self) -> None:
        if not self._future.done() or self._future.exception() is not None:
            self.fail(ShuttingDown())

    def peek(self) -> Thing | None:
        """The value if it is there already."""
        future = self._future
        return future.result() if future.done() and not future.cancelled() and future.exception() is None else None

    async def get(self) -> Thing:
        return await asyncio.shield(self._future)
