"""A sample of `make soak`: what calls leave in a server is counted by kind of object, which no machine's speed changes."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from bench.soak import McpHttpLane, Meter, measured_server, soak

from tests.support import warm
from tests.support.serving import running_server
from tests.support.waiting import wait_until
from tests.support.warm import customize
from wsh.wire.system.place import Places

WARM_UP, MIDDLE, CALLS = 300, 600, 900
COUNTER = """
import collections, gc, os, signal, sys

def count(number, frame):
    gc.collect()
    counted = collections.Counter(type(one).__qualname__ for one in gc.get_objects())
    counted["(all, those that no collector follows too)"] = sys.getallocatedblocks()
    path = os.environ["SOAK_COUNTS"]
    with open(path + ".new", "w") as out:
        out.writelines(f"{many} {kind}\\n" for kind, many in counted.items())
    os.replace(path + ".new", path)

if "SOAK_COUNTS" in os.environ:
    signal.signal(signal.SIGUSR2, count)
"""


def count_objects(pid: int, path: Path) -> Counter[str]:
    """How many objects of each kind a server has."""
    path.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR2)
    wait_until(path.exists, "the server to count its objects")
    lines = (line.split(" ", 1) for line in path.read_text().splitlines())
    return Counter({kind: int(many) for many, kind in lines})


class CountingMeter(Meter):
    """Counts the server's objects after the warm-up, and in the middle of what is left."""

    path: Path
    before: Counter[str]
    middle: Counter[str]

    def count(self) -> None:
        super().count()
        if self.done == self.warm_up:
            self.before = count_objects(self.pid, self.path)
        elif self.done == MIDDLE:
            self.middle = count_objects(self.pid, self.path)


async def test_calls_through_every_door_leave_no_objects_behind(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLOWED_COMMANDS", "true")
    environ = {
        **customize(tmp_path, COUNTER),
        "SOAK_COUNTS": str(tmp_path / "counts"),
        # histories that are full before the counting begins
        "WSH_SESSION_COMMAND_HISTORY": "10",
        "WSH_MCP_IDLE_SESSIONS": "1",
        "WSH_SESSION_RETENTION_S": "0",
    }
    with running_server(places, environ=environ, expect_alive=True) as server:
        meter = CountingMeter(server.process.pid, CALLS, CALLS, WARM_UP)
        meter.path = tmp_path / "counts"
        await soak(server, meter, lines=100)

        def grown() -> Counter[str]:
            """In both halves: what runs for the first time leaves something in one of them, and a leak in both."""
            return (meter.middle - meter.before) & (count_objects(server.process.pid, meter.path) - meter.middle)

        # A leak is one for each call. On a busy machine the last calls end a little later.
        allowed = (CALLS - MIDDLE) // 2
        wait_until(lambda: max(grown().values(), default=0) <= allowed, "what the calls made to go", seen=grown)


def test_the_soak_measures_a_server_whose_memory_is_its_own(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was forked from a warm process would seem to grow with every shared page that it writes."""
    monkeypatch.delattr(warm._Warm, "start")
    with measured_server(places) as server:
        assert server.get("/sessions") == []


async def test_mcp_sessions_that_were_left_behind_are_ended_the_oldest_first(places: Places) -> None:
    with running_server(places, environ={"WSH_MCP_IDLE_SESSIONS": "3"}) as server:
        lane = McpHttpLane(server, "none")
        sessions: list[str | None] = []
        for _ in range(6):
            lane.session = None
            await lane.tool("wsh_list_sessions")
            sessions.append(lane.session)
        statuses = []
        for session in sessions:
            lane.session = session
            statuses.append(await lane.probe())
        await lane.aclose()
    # The newest of the idle ones may still have been at work when the last one came.
    assert statuses == sorted(statuses, reverse=True) and statuses.count(404) in (2, 3), statuses
