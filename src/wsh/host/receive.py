"""The far end of a carrier: every call is made once, and its answer is kept until it has certainly arrived.

A cut must not end what a call waits for, and must not make it happen twice. So a call goes on when its connection is gone, for as
long as somebody may come back for it; the same id gets the same answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wsh.host.carrier import ForwardedAnswer, ForwardedCall, ProgressListener
from wsh.wire.error import LimitReached

if TYPE_CHECKING:
    from wsh.wire.json.object import JsonObject


@dataclass
class _Known:
    task: asyncio.Task[ForwardedAnswer]
    on_progress: ProgressListener | None = None
    """Of the connection that asked last."""
    waiting: int = 0
    """Connections that want the answer now."""
    expiry: asyncio.TimerHandle | None = field(default=None, repr=False)


class Receiver:
    """`make` makes a call and never raises for a call that failed: the failure is its answer."""

    def __init__(
        self,
        make: Callable[[ForwardedCall, ProgressListener], Awaitable[ForwardedAnswer]],
        *,
        keep_s: float = 120.0,
        most: int = 4096,
    ) -> None:
        self._make = make
        self._keep_s = keep_s
        self._most = most
        self._known: dict[str, _Known] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._known

    async def answer(self, call: ForwardedCall, on_progress: ProgressListener | None = None) -> ForwardedAnswer:
        """The answer, whether the call is new, under way or over. Being cancelled leaves the call alone: see `cancel`."""
        known = self._known.get(call.id)
        if known is None:
            if len(self._known) >= self._most:
                return ForwardedAnswer.of_error(LimitReached("forwarded calls", self._most, "hosts.max_calls"))
            made = self._make(call, lambda told: self._tell(call.id, told))
            known = self._known[call.id] = _Known(asyncio.ensure_future(made))
        known.on_progress = on_progress
        return await self.answer_again(call.id)

    def _tell(self, id: str, told: JsonObject) -> None:
        known = self._known.get(id)
        if known is not None and known.waiting and known.on_progress is not None:
            known.on_progress(told)

    async def answer_again(self, id: str) -> ForwardedAnswer:
        """The answer of a call that is known."""
        known = self._known[id]
        if known.expiry is not None:
            known.expiry.cancel()
            known.expiry = None
        known.waiting += 1
        try:
            return await asyncio.shield(known.task)
        finally:
            known.waiting -= 1
            if not known.waiting:
                loop = asyncio.get_running_loop()
                known.expiry = loop.call_later(self._keep_s, self.cancel, id)

    def cancel(self, id: str) -> None:
        """End it if it is under way, and forget it: the caller has its answer, or wants none."""
        known = self._known.pop(id, None)
        if known is None:
            return
        if known.expiry is not None:
            known.expiry.cancel()
        known.task.cancel()

    async def aclose(self) -> None:
        tasks = [known.task for known in self._known.values()]
        for id in list(self._known):
            self.cancel(id)
        await asyncio.gather(*tasks, return_exceptions=True)
