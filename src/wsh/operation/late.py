"""Things that are ready a moment after the server is: whoever needs one waits for it."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from wsh.wire.error import ShuttingDown

Thing = TypeVar("Thing")


class Late(Generic[Thing]):
    """A value that comes once, or never if the server ends before."""

    def __init__(self) -> None:
        self._future: asyncio.Future[Thing] = asyncio.get_running_loop().create_future()

    def set(self, thing: Thing) -> None:
        if not self._future.done():
            self._future.set_result(thing)

    def fail(self, problem: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(problem)
            self._future.exception()

    def close(self) -> None:
        self.fail(ShuttingDown())

    async def get(self) -> Thing:
        return await asyncio.shield(self._future)
