"""Sending what is due: one worker per channel, which writes `sending` before it sends and what came of it afterwards."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeAlias

from wsh.notice.outbox import Notice, Outbox
from wsh.notice.post import Undelivered
from wsh.notice.rule import Channel

log = logging.getLogger(__name__)

_AT_ONCE: dict[Channel, int] = {"push": 8}
"""Notices that are tried at the same time, so that a push service which does not answer holds up no other; else one after the other."""
_MOST_DOUBLINGS = 32
"""Of the pause between two tries: enough to go from the shortest that can be set to the longest."""

Send: TypeAlias = Callable[[Notice], Awaitable[None]]
"""Returns when the notice was handed over; raises Undelivered."""


class Courier:
    """`senders` by channel. `was_seen` says whether the person has been at it since the notice was made.

    A notice is held back as long as it is not `known` whether what it tells of still waits.
    """

    def __init__(
        self,
        outbox: Outbox,
        senders: Mapping[Channel, Send],
        was_seen: Callable[[Notice], bool],
        known: Callable[[Notice], bool],
        *,
        retry_s: float,
        longest_retry_s: float,
        give_up_s: float,
    ) -> None:
        self._outbox = outbox
        self._senders = senders
        self._was_seen, self._known = was_seen, known
        self._retry_s, self._longest_retry_s, self._give_up_s = retry_s, longest_retry_s, give_up_s
        self._woken = {channel: asyncio.Event() for channel in senders}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.ensure_future(self._work(channel)) for channel in self._senders]

    def wake(self) -> None:
        for event in self._woken.values():
            event.set()

    async def aclose(self) -> None:
        """What is under way is finished, so that nobody has to wonder; at most as long as one try takes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, channel: Channel) -> None:
        woken, most = self._woken[channel], _AT_ONCE.get(channel, 1)
        trying: dict[str, asyncio.Task[None]] = {}

        def end(id: str, task: asyncio.Task[None]) -> None:
            del trying[id]
            woken.set()

        try:
            while True:
                woken.clear()
                waiting = [notice for notice in self._list_due(channel) if notice.id not in trying]
                for notice in waiting:
                    if len(trying) < most and notice.deliveries[channel].next_at <= time.time():
                        trying[notice.id] = task = asyncio.ensure_future(self._try(channel, notice.id))
                        task.add_done_callback(partial(end, notice.id))
                later = [one.deliveries[channel].next_at for one in waiting if one.id not in trying]
                try:
                    # Where no more can be tried at once, the end of a try wakes.
                    full = len(trying) == most or not later
                    async with asyncio.timeout(None if full else max(0.01, min(later) - time.time())):
                        await woken.wait()
                except TimeoutError:
                    pass
        finally:
            tasks = list(trying.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _list_due(self, channel: Channel) -> list[Notice]:
        return [notice for notice in self._outbox.list_due(channel) if self._known(notice)]

    async def _try(self, channel: Channel, id: str) -> None:
        try:
            sending = asyncio.ensure_future(self._send(channel, id))
            try:
                await asyncio.shield(sending)
            except asyncio.CancelledError:
                await asyncio.gather(sending, return_exceptions=True)
                raise
        except OSError as problem:
            log.warning("the outbox could not be written: %s", problem)
            self._outbox.deliver(id, channel, "due", "the disk refused to note it", time.time() + self._retry_s)
        except Exception:  # one notice that cannot be sent must not hold up the channel
            log.exception("a notice could not be sent by %s", channel)
            self._outbox.deliver(id, channel, "failed", "the server failed; its log says how")

    async def _send(self, channel: Channel, id: str) -> None:
        notice = self._outbox.notices.get(id)
        if notice is None or notice.deliveries[channel].state != "due":
            return
        if notice.over or self._was_seen(notice):
            self._outbox.deliver(id, channel, "over" if notice.over else "seen")
            await self._outbox.commit()
            return
        self._outbox.deliver(id, channel, "sending")
        await self._outbox.commit()
        try:
            await self._senders[channel](notice)
        except Undelivered as problem:
            tries = notice.deliveries[channel].tries
            pause_s = max(problem.after_s, min(self._retry_s * 2 ** min(tries, _MOST_DOUBLINGS), self._longest_retry_s))
            if problem.again and time.time() + pause_s - notice.made < self._give_up_s:
                self._outbox.deliver(id, channel, "due", str(problem), time.time() + pause_s)
            else:
                self._outbox.deliver(id, channel, "failed", str(problem))
        else:
            self._outbox.deliver(id, channel, "sent")
        try:
            await self._outbox.commit()
        except OSError as problem:  # what was sent is sent, also where the disk cannot note it
            log.warning("the outbox could not be written: %s", problem)
