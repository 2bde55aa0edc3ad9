"""`python -m bench.fleet --nodes 50 --sessions 10000`: nodes as processes on one machine, and what one NATS server carries.

Prints JSON. Root raises `kernel.pty.max` and descriptors first; the sessions are `sleep`. Not among the benchmarks of `python -m bench`: it fills the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import statistics
import sys
import tempfile
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import psutil
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until

from wsh.host.fleet.deploy import find_program, set_up, start_nats
from wsh.wire.system.place import find_places

_IDLE_S = 20.0
_LONG_S = 1800.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.fleet")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--sessions", type=int, default=100, help="of all nodes together")
    parser.add_argument("--nats", help="the nats-server to run")
    options = parser.parse_args()
    _raise_limits(options.sessions)
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.nodes, options.sessions, options.nats)


def _raise_limits(sessions: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = Path("/proc/sys/kernel/pty/max")
    if os.geteuid() == 0 and int(most.read_text()) < sessions + 1000:
        most.write_text(str(sessions + 1000))


def measure(folder: Path, nodes: int, sessions: int, program: str | None) -> None:
    """Prints what was found before anything is ended, and what it does on stderr."""
    deployment = set_up(folder / "nats", "bench", "127.0.0.1", 0)
    names = [f"node{number}" for number in range(nodes)]
    for name in names:
        deployment.invite(name, "owner").write(folder / name / "c" / "wsh" / "fleet.json")
    deployment.write()
    nats = asyncio.run(start_nats(deployment, find_program(program)))
    assert nats is not None
    with ExitStack() as closing:
        closing.callback(nats.wait)
        closing.callback(nats.kill)
        _tell(f"starting {nodes} nodes")
        servers = [closing.enter_context(_serve(folder / name, deployment.url)) for name in names]
        first = servers[0]
        wait_until(lambda: _count_online(first) == nodes, "all nodes", timeout_s=_LONG_S)
        _tell(f"opening {sessions} sessions")
        for number in range(sessions):
            made = servers[number % nodes].request("POST", "/sessions", {"command": "sleep 100000"}, timeout=_LONG_S)
            assert made.status == 201, made
        wait_until(lambda: len(first.get("/sessions")) == sessions, "all sessions", timeout_s=_LONG_S)
        found: dict[str, object] = {"nodes": nodes, "sessions": sessions, "list_s": _measure_list(first, sessions)}
        _tell(f"listed in {found['list_s']} s; half a minute without viewers")
        found |= _measure_idle([server.process.pid for server in servers[1:]], nats.pid)
        found |= _measure_death(servers)
        print(json.dumps(found, indent=1), flush=True)
        _tell("ending everything")


def _tell(what: str) -> None:
    print(f"· {what}", file=sys.stderr, flush=True)


def _measure_list(server: RunningServer, sessions: int) -> float:
    """Seconds, the median of five."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        assert len(server.get("/sessions")) == sessions
        times.append(time.perf_counter() - started)
    return round(statistics.median(times), 3)


def _serve(folder: Path, url: str) -> AbstractContextManager[RunningServer]:
    environ = {**os.environ, "WSH_FLEET_URL": url, "WSH_FLEET_LINGER_S": "5", "WSH_SERVER_MAX_SESSIONS": "100000"}
    for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        environ[variable] = str(folder / name)
    return running_server(find_places(environ), environ=environ, check_left=False)


def _count_online(server: RunningServer) -> int:
    return sum(node["online"] for node in server.get("/fleet")["nodes"])


def _measure_idle(nodes: list[int], nats: int) -> dict[str, object]:
    """Per cent of a core over a while in which nobody looks."""
    time.sleep(10)  # the list is not followed any more
    processes = [psutil.Process(pid) for pid in nodes]
    before = [sum(one.cpu_times()[:2]) for one in processes], sum(psutil.Process(nats).cpu_times()[:2])
    time.sleep(_IDLE_S)
    used = [sum(one.cpu_times()[:2]) - then for one, then in zip(processes, before[0], strict=True)]
    nats_used = sum(psutil.Process(nats).cpu_times()[:2]) - before[1]
    return {
        "idle_percent_per_node": round(100 * sum(used) / max(1, len(used)) / _IDLE_S, 3),
        "idle_percent_of_nats": round(100 * nats_used / _IDLE_S, 3),
    }


def _measure_death(servers: list[RunningServer]) -> dict[str, object]:
    first, last = servers[0], servers[-1]
    _count_online(first)
    last.process.send_signal(signal.SIGKILL)
    started = time.perf_counter()
    wait_until(lambda: _count_online(first) == len(servers) - 1, "the dead node to be seen")
    return {"death_seen_s": round(time.perf_counter() - started, 2)}


if __name__ == "__main__":
    main()
