"""The window's list of the server's sessions, without a window."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import pytest

from tests.support.waiting import until
from wsh.desktop import remote
from wsh.wire.system.place import Places


class BusyServer:
    """Has told of many sessions that came and went, and counts how often it is asked for its list."""

    def __init__(self) -> None:
        self.events = 500
        self.lists = 0
        self.all_heard = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        pass

    async def list(self) -> list[Any]:
        self.lists += 1
        return []

    async def call(self, method: str, path: str) -> dict[str, Any]:
        return {"items": []}

    async def recv(self) -> str:
        if self.events:
            self.events -= 1
            return "{}"
        self.all_heard = True
        await asyncio.Event().wait()
        raise AssertionError


async def test_one_look_serves_all_the_news_of_a_busy_server(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    server = BusyServer()
    monkeypatch.setattr(remote, "connect", lambda **options: server)
    monkeypatch.setattr(remote, "unix_connect", lambda *where, **options: server)
    sessions = remote.RemoteSessions(places, lambda: None, lambda rows: None)
    following = asyncio.ensure_future(sessions._follow())
    await until(lambda: server.all_heard, "all that was told", seen=lambda: server.events)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert server.lists <= 2
