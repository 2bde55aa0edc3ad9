"""Begin a coroutine at once, within the caller's own step, in a task that carries it on where it has to wait.

What never waits is over when `begin` returns: no turn of the loop lies between asking and the answer. Python 3.12 has this as eager tasks;
for 3.11 it is made here of what asyncio offers to those who write tasks of their own.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")

if sys.version_info >= (3, 12):

    def begin(coroutine: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """What becomes of `coroutine`: over already, or a task."""
        return asyncio.Task(coroutine, loop=asyncio.get_running_loop(), eager_start=True)

else:

    def begin(coroutine: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """What becomes of `coroutine`: over already, or a task."""
        loop = asyncio.get_running_loop()
        carried = _Carried(coroutine)
        context = contextvars.copy_context()
        # Made before the first step, which may ask for the task that it is in (a timeout does).
        task: asyncio.Task[T] = asyncio.Task(carried, loop=loop, context=context)
        around = asyncio.current_task(loop)
        if around is not None:
            asyncio._leave_task(loop, around)
        asyncio._enter_task(loop, task)
        try:
            carried.waits_for = context.run(coroutine.send, None)
        except StopIteration as end:
            over: asyncio.Future[T] = loop.create_future()
            over.set_result(end.value)
        except asyncio.CancelledError as cancelled:
            over = loop.create_future()
            over.cancel(*cancelled.args)
        except Exception as problem:
            over = loop.create_future()
            over.set_exception(problem)
        else:
            return task
        finally:
            asyncio._leave_task(loop, task)
            if around is not None:
                asyncio._enter_task(loop, around)
        carried.is_over = True
        return over

    class _Carried(Coroutine[Any, Any, T]):
        """A coroutine whose first step is done; its task takes that step once more, and gets what it has led to."""

        def __init__(self, inner: Coroutine[Any, Any, T]) -> None:
            self._inner = inner
            self._told = False
            self.waits_for: Any = None
            self.is_over = False

        def send(self, value: Any) -> Any:
            if self.is_over:
                raise StopIteration
            if not self._told:
                self._told = True
                return self.waits_for
            return self._inner.send(value)

        def throw(self, kind: Any, value: BaseException | object = None, trace: TracebackType | None = None, /) -> Any:
            if self.is_over:
                raise StopIteration
            if not self._told:
                # Cancelled before the task's first step: what the coroutine waits for is cancelled, as by any task.
                self._told = True
                if self.waits_for is not None and self.waits_for.cancel():
                    return self.waits_for
            return self._inner.throw(kind) if value is None else self._inner.throw(kind, value, trace)

        def close(self) -> None:
            self._inner.close()

        def __await__(self) -> Any:
            raise TypeError("it has begun: a task carries it on")
