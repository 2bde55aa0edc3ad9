"""From an agent's request to the push at the service of the person's browser, decrypted and with its signature checked there.

The first one of a server imports what encrypts and makes the keys; it is told beside the others.
"""

from __future__ import annotations

import time

from tests.http.test_server_approval import execute
from tests.support.notice.receiver import Receiver, running_receiver
from tests.support.serving import RunningServer, running_server

from bench.private import private_places
from bench.row import Row, at_most, median

ROUNDS = 10
LIMIT_S = 1.0
_ENVIRON = {"WSH_APPROVALS_SERVER": "true", "WSH_NOTIFY_PUSH_LOOPBACK": "true", "WSH_NOTIFY_PRESENT_S": "0"}


def run() -> list[Row]:
    with (
        private_places() as places,
        running_receiver() as receiver,
        running_server(places, environ=_ENVIRON, check_left=False) as server,
    ):
        assert server.request("POST", "/push/subscriptions", receiver.subscription()).status == 201
        key = str(server.get("/push/key")["key"])
        took = [_measure(server, receiver, key, number) for number in range(1, ROUNDS + 2)]
    first, others = took[0], took[1:]
    note = f"the first {first:.2f} s, the slowest other {max(others):.2f} s"
    return [
        at_most("push", "from a request to its push", median(others), LIMIT_S, "s", note),
        at_most("push", "the first of a server", first, LIMIT_S, "s"),
    ]


def _measure(server: RunningServer, receiver: Receiver, key: str, number: int) -> float:
    began = time.perf_counter()
    body = execute("true", str(number), timeout_ms=1)
    assert (
        server.request("POST", "/terminal", body, headers={"wsh-role": "agent"}, timeout=60).json["status"]
        == "accepted"
    )
    while sum(one.path == "/push/1" for one in list(receiver.taken)) < number:
        assert time.perf_counter() - began < 60, "no push came"
        time.sleep(0.002)
    took = time.perf_counter() - began
    assert len(receiver.pushes(key)) == number
    return took
