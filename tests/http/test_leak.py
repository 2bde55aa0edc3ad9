"""Sessions that come and go leave nothing: no memory, no descriptor, no child, no file."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.support.process.descriptor import count_descriptors
from tests.support.serving import RunningServer, find_processes, running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places


def live_once(server: RunningServer, number: int) -> None:
    """Create, run, read, decorate, watch, kill."""
    name = f"cycle{number}"
    assert server.request("POST", "/sessions", {"name": name, "command": "bash --norc"}).status == 201
    done = server.request("POST", f"/sessions/{name}/run", {"input": f"echo {number}"})
    assert done.status == 200, done
    server.request("POST", f"/sessions/{name}/panel", {"position": "top", "height": 1, "spans": [{"text": "x"}]})
    server.request("POST", f"/sessions/{name}/input/capture")
    assert server.request("GET", f"/sessions/{name}/screen").status == 200
    assert server.request("DELETE", f"/sessions/{name}").status == 204


def count_files(places: Places) -> int:
    return sum(1 for path in places.sessions.rglob("*") if path.is_file())


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_sessions_that_come_and_go_leave_nothing(places: Places, torture: bool) -> None:
    warm_up, cycles = (200, 2000) if torture else (15, 45)
    with running_server(places, expect_alive=True) as server:
        for number in range(warm_up):
            live_once(server, number)
        server.request("POST", "/workspace/check_status", {})
        keeper = next(p for p in find_processes(places) if "keeper" in " ".join(p.cmdline()))
        both = [psutil.Process(server.process.pid), keeper]
        wait_until(lambda: set(find_processes(places)) <= set(both), "the last children to be gone")
        descriptors = [count_descriptors(process.pid) for process in both]
        memory = [process.memory_info().rss for process in both]
        for number in range(warm_up, cycles):
            live_once(server, number)
        wait_until(lambda: set(find_processes(places)) <= set(both), "the last children to be gone")
        # A pool that grew by one is no leak; one for each session would be.
        wait_until(
            lambda: all(
                (count_descriptors(p.pid) or 0) <= (d or 0) + 3 for p, d in zip(both, descriptors, strict=True)
            ),
            f"descriptors back to {descriptors}",
        )
        assert count_files(places) == 0
        for process, before in zip(both, memory, strict=True):
            growth = process.memory_info().rss / before - 1
            assert growth < (0.05 if torture else 0.15), (
                f"{Path(f'/proc/{process.pid}/cmdline').read_bytes()!r}: {growth:.1%}"
            )
