"""A WebSocket client for tests: requests by method, events by name, and a screen kept up to date by applying news."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.support.serving import RunningServer
from tests.support.waiting import HANG_S


class Talk:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.events: deque[dict[str, Any]] = deque()
        self._next = 0

    def receive(self, timeout: float = HANG_S) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.connection.recv(timeout=timeout))
        return message

    def send(self, method: str, params: Any = None, **more: Any) -> int:
        self._next += 1
        body: dict[str, Any] = {"id": self._next, "method": method, **more}
        if params is not None:
            body["params"] = params
        self.connection.send(json.dumps(body))
        return self._next

    def answer(self, number: int, timeout: float = HANG_S) -> dict[str, Any]:
        """The answer to request `number`; events that come before it are kept."""
        deadline = time.monotonic() + timeout
        while True:
            message = self.receive(max(0.01, deadline - time.monotonic()))
            if "event" in message:
                self.events.append(message)
            elif message.get("id") == number:
                return message

    def ask(self, method: str, params: Any = None, timeout: float = HANG_S, **more: Any) -> Any:
        """The result, or an AssertionError with the error."""
        answer = self.answer(self.send(method, params, **more), timeout)
        assert "result" in answer, answer
        assert answer["method"] == method
        return answer["result"]

    def fail(self, method: str, params: Any = None, **more: Any) -> str:
        answer = self.answer(self.send(method, params, **more))
        assert "error" in answer, answer
        return str(answer["error"]["code"])

    def event(
        self, name: str, where: Callable[[dict[str, Any]], bool] = lambda e: True, timeout: float = HANG_S
    ) -> Any:
        """The next event of this name that fits; others before it are dropped."""
        deadline = time.monotonic() + timeout
        while True:
            message = self.events.popleft() if self.events else self.receive(max(0.01, deadline - time.monotonic()))
            if message.get("event") == name and where(message):
                return message


@contextmanager
def talk(server: RunningServer, path: str, token: str = "", **more: Any) -> Iterator[Talk]:
    headers = {"Authorization": f"Bearer {token or server.token}"}
    with connect(f"{server.ws_url}{path}", additional_headers=headers, max_size=None, **more) as connection:
        client = Talk(connection)
        assert client.receive() == {"connected": True}
        yield client


class Mirror:
    """A screen that is kept by `sync`, `reset` and `diff` alone."""

    def __init__(self) -> None:
        self.screen: dict[str, Any] = {}
        self.seq = -1

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] == "sync":
            self.screen = json.loads(json.dumps(event["screen"]))
            self.seq = event["seq"]
        elif event["event"] == "diff":
            assert event["base_seq"] == self.seq, "a difference to something that was not told"
            self.seq = event["seq"]
            for row in event["rows"]:
                self.screen["lines"][row["row"]] = row["line"]
            for key in ("cursor", "first_line_index", "total_lines", "epoch", "mode"):
                self.screen[key] = event[key]
