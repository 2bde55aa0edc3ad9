"""A keeper of its own for each test, stopped at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.support.process.keeper import opened
from wsh.process import KeeperClient
from wsh.wire.system.place import Places


@pytest.fixture
def run(places: Places) -> Callable[[Callable[[KeeperClient], Coroutine[Any, Any, None]]], None]:
    """Run a coroutine function with a keeper of its own."""

    def run(test: Callable[[KeeperClient], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            async with opened(places) as keeper:
                await test(keeper)

        asyncio.run(whole())

    return run
