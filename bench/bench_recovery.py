"""How long a server's death is noticed: from the start of the next one until every session answers with its screen.

Eight sessions have printed 2 MB between them and have no snapshot yet, so all of it is parsed again. Once the server is killed, once its
terminal engine dies of what a session prints (a stand-in for a fault of the engine, `tests/support/deadly`), which the next server
finds and leaves out. The start of a server without sessions is measured beside it.
"""

from __future__ import annotations

import signal
import time
from http.client import HTTPException
from pathlib import Path

from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until

from bench.private import private_places
from bench.row import Row, at_most, median
from wsh.wire.system.place import Places

ROUNDS = 3
LIMIT_S = 2.0
OTHERS = [f"other{number}" for number in range(7)]
_DEADLY = str(Path(__file__).parent.parent / "tests" / "support" / "deadly")


def run() -> list[Row]:
    times: dict[str, list[float]] = {"nothing": [], "kill -9": [], "a death of the engine": []}
    for _ in range(ROUNDS):
        for name in times:
            with private_places() as places:
                times[name].append(_measure(places, name))
    plain = median(times.pop("nothing"))
    return [
        at_most(
            "recovery",
            f"after {name}, until 8 sessions answer",
            median(each),
            LIMIT_S,
            "s",
            f"a start without sessions: {plain:.2f} s",
        )
        for name, each in times.items()
    ]


def _measure(places: Places, how: str) -> float:
    environ = {"PYTHONPATH": _DEADLY}
    if how == "nothing":
        began = time.perf_counter()
        with running_server(places, environ=environ, check_left=False) as server:
            server.get("/sessions")
            return time.perf_counter() - began
    first = start_server(places, environ=environ)
    _fill(first)
    if how == "kill -9":
        first.process.send_signal(signal.SIGKILL)
    else:
        _type(first, "hurt", "printf 'DEA''DLY'\r")
    first.process.wait(60)
    began = time.perf_counter()
    with running_server(places, environ=environ, check_left=False) as server:
        for name in ("hurt", *OTHERS):
            server.get(f"/sessions/{name}/screen?format=plain")
        took = time.perf_counter() - began
        notice = server.get("/sessions/hurt")["notice"]
        assert (notice is None) == (how == "kill -9"), notice
        return took


def _fill(server: RunningServer) -> None:
    for name in ("hurt", *OTHERS):
        asked = {"name": name, "command": "bash --norc", "rows": 40, "cols": 80, "env": {"PS1": "$ "}}
        assert server.request("POST", "/sessions", asked).status == 201
        lines = 200_000 if name == "hurt" else 20_000
        _type(server, name, f"seq {lines}; echo fi''lled\r")
    for name in ("hurt", *OTHERS):
        screen = f"/sessions/{name}/screen?format=plain"
        wait_until(lambda path=screen: "filled" in str(server.get(path)["lines"]), "its output")  # type: ignore[misc]


def _type(server: RunningServer, name: str, text: str) -> None:
    try:
        server.request("POST", f"/sessions/{name}/input", text.encode())
    except (OSError, HTTPException):
        pass  # it may die before it answers
