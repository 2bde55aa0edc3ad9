"""News of another machine's outbox lead to a reading of it, whenever they come."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.session.running import run
from tests.support.waiting import until
from wsh.app.far_notice import FarNotices
from wsh.operation.news import NOTICE_TOLD


class Hosts:
    """One host that is online."""

    def __init__(self) -> None:
        self.tell: Any = None
        self.state = SimpleNamespace(name="gpu1", online=True, same_as=None, kind="ssh")

    def __contains__(self, host: str) -> bool:
        return host == "gpu1"

    def listen(self, listener: Any) -> Any:
        self.tell = listener
        return lambda: None

    def get_carrier(self, host: str) -> Any:
        return SimpleNamespace(state=self.state)

    def list_hosts(self) -> list[Any]:
        return [self.state]


def test_news_that_come_as_a_reading_ends_lead_to_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        hosts, readings = Hosts(), 0
        far = FarNotices(SimpleNamespace(hosts=hosts))  # type: ignore[arg-type]  # as much of the rooms as is used

        async def read(host: str) -> None:
            nonlocal readings
            readings += 1
            if readings == 1:  # after the last look at what came meanwhile, and before the end of the task is told
                asyncio.get_running_loop().call_soon(hosts.tell, host, {"event": NOTICE_TOLD})

        monkeypatch.setattr(far, "_read_once", read)
        hosts.tell("gpu1", {"event": NOTICE_TOLD})
        await until(lambda: readings == 2, "the second reading", seen=lambda: readings)
        await until(lambda: not far._reading, "its end")
        await far.aclose()

    run(main())
