"""What the tests of the door share: a door with small tools, and hosts of every kind that talk to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.mcp.door import RunningDoor, serve
from tests.support.mcp.host import HttpHost, StdioHost
from wsh.wire.system.place import Places

KINDS = ("stdio", "http", "http-modern")
FRAMINGS = ("raw", "chunked")
"""How lines travel between `wsh mcp` and a server: as now, and as with a server that is older."""


@pytest.fixture
def door(places: Places) -> Iterator[RunningDoor]:
    with serve(places) as running:
        yield running


@pytest.fixture
def http(door: RunningDoor) -> Iterator[HttpHost]:
    with HttpHost(door.url) as host:
        host.initialize()
        yield host


@pytest.fixture(params=FRAMINGS)
def either_stdio(request: pytest.FixtureRequest, places: Places) -> Iterator[StdioHost]:
    with serve(places, raw=request.param == "raw"), StdioHost() as host:
        host.initialize()
        yield host


@pytest.fixture
def stdio(door: RunningDoor) -> Iterator[StdioHost]:
    with StdioHost() as host:
        host.initialize()
        yield host


@pytest.fixture(params=KINDS)
def any_host(request: pytest.FixtureRequest, door: RunningDoor) -> Iterator[HttpHost | StdioHost]:
    """The same test through every transport and both eras."""
    if request.param == "stdio":
        with StdioHost() as stdio:
            stdio.initialize()
            yield stdio
    else:
        with HttpHost(door.url, modern=request.param == "http-modern") as http:
            if not http.modern:
                http.initialize()
            yield http
