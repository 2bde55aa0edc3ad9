"""A keeper of its own for each test, stopped at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.process.keeper import opened
from wsh.process import KeeperClient
from wsh.wire.system.place import Places


@pytest.fixture
async def keeper(places: Places) -> AsyncIterator[KeeperClient]:
    async with opened(places) as keeper:
        yield keeper
