"""Notices of other machines, told here: a host says that it has news in its outbox, and this server reads them.

What was told while the connection was cut is read when it is back, since the number of the newest one is kept on disk.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from wsh.host.ending import end_tasks
from wsh.notice.watch import FarNotice
from wsh.operation.forward import Place, forward
from wsh.operation.news import NOTICE_TOLD
from wsh.operation.notice import NoticeInfo, NoticeList, NoticeQuery, list_notices
from wsh.operation.operation import OperationCall
from wsh.wire.caller import Caller
from wsh.wire.error import WshError

if TYPE_CHECKING:
    from wsh.operation.context import Rooms
    from wsh.wire.json.object import JsonObject

log = logging.getLogger("wsh.host")

_MOST = 1000
_OWNER = Caller("owner", "owner", "unix", account="notices")


class FarNotices:
    """One reading per host at a time; what comes meanwhile makes another one follow."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._stop = rooms.hosts.listen(self._on_news)

    async def aclose(self) -> None:
        self._stop()
        await end_tasks(self._reading.values())

    def _on_news(self, host: str, news: JsonObject) -> None:
        if news["event"] not in (NOTICE_TOLD, "host_changed") or host not in self._rooms.hosts:
            return
        if host in self._reading:
            self._again.add(host)
        elif self._rooms.hosts.get_carrier(host).state.kind == "ssh":
            self._begin(host)

    def _begin(self, host: str) -> None:
        self._reading[host] = asyncio.ensure_future(self._read(host))
        self._reading[host].add_done_callback(lambda task: self._end(host, task))

    def _end(self, host: str, task: asyncio.Task[None]) -> None:
        del self._reading[host]
        if host in self._again and not task.cancelled():
            self._begin(host)  # the news came when the reading was over and this not yet called

    async def _read(self, host: str) -> None:
        while True:
            self._again.discard(host)
            state = next((one for one in self._rooms.hosts.list_hosts() if one.name == host), None)
            if state is None or not state.online or state.same_as is not None:
                return
            try:
                await self._read_once(host)
            except WshError as problem:
                log.debug("the notices of %s were not read: %s", host, problem)
            if host not in self._again:
                return

    async def _read_once(self, host: str) -> None:
        watch = self._rooms.notices.watch
        # Those that still wait may be over by now.
        after = 0 if watch.has_open(host) else watch.get_heard(host) or 0
        params = NoticeQuery(after=after, limit=_MOST)
        call = OperationCall(list_notices, params, _OWNER)
        found = cast(NoticeList, await forward(call, Place(host, None, params), self._rooms))
        # One that the host itself was told by another machine is that machine's to tell.
        own = [one for one in found.notices if "/" not in one.id]
        watch.take_far(host, [_read_notice(one, host) for one in own], found.newest)


def _read_notice(one: NoticeInfo, host: str) -> FarNotice:
    return FarNotice(
        one.seq,
        one.id,
        one.kind,
        one.since,
        one.text,
        None if one.session is None else one.session.removeprefix(f"{host}/"),
        one.request_id,
        one.exit_code,
        one.duration_ms,
        one.over,
    )
