"""A viewer's WebSocket: pictures out, keys in, and what a viewer may not do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect, unix_connect

from tests.http.route.test_session import settle
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import HANG_S, wait_until
from wsh.terminal.terminal import Terminal
from wsh.wire.system.place import Places

Open = Callable[..., str]


class Looking:
    """A viewer with an emulator, and what it was told."""

    def __init__(self, connection: ClientConnection, rows: int, cols: int) -> None:
        self.connection = connection
        self.terminal = Terminal(rows, cols)
        self.told: list[dict[str, Any]] = []

    def read_until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + HANG_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {self.lines} {self.told}"
            try:
                message = self.connection.recv(timeout=0.1)
            except TimeoutError:
                continue
            if isinstance(message, bytes):
                self.terminal.feed(message)
            else:
                self.told.append(json.loads(message))

    @property
    def lines(self) -> list[str]:
        return [str(line) for line in self.terminal.screen(False).lines]

    def was_told(self, kind: str) -> bool:
        return any(message["type"] == kind for message in self.told)

    def say(self, **message: object) -> None:
        self.connection.send(json.dumps(message))


def look(
    server: RunningServer, name: str, *, rows: int = 24, cols: int = 80, headers: Mapping[str, str] | None = None
) -> Looking:
    url = f"{server.ws_url}/sessions/{name}/ws/view?rows={rows}&cols={cols}"
    sent = {**server.auth, **(headers or {})}
    return Looking(connect(url, additional_headers=sent, max_size=None), rows, cols)


def test_garbage_of_one_viewer_is_an_error_for_it_and_nothing_for_the_others(
    server: RunningServer, open_session: Open
) -> None:
    name = open_session("cat")
    bad, good = look(server, name), look(server, name)
    with bad.connection, good.connection:
        for text in ("", "{", "[]", "null", '{"type": "fly"}', '{"type": "resize", "rows": 0, "cols": 9999999}'):
            bad.told.clear()
            bad.connection.send(text)
            bad.read_until(lambda: bad.was_told("error"), f"an error for {text!r}")
        bad.connection.send(b"")
        bad.connection.send(b"\x00\xff\xfe\x1b[\x1b]")
        good.connection.send(b"\x15still here\r")
        good.read_until(lambda: "still here" in good.lines, "the others go on")
        bad.read_until(lambda: "still here" in bad.lines, "and so does this one")


def test_an_agent_may_look_and_neither_type_nor_take_over_nor_hand_back(
    server: RunningServer, open_session: Open
) -> None:
    name = open_session("cat")
    settle(server, name)
    person, agent = look(server, name), look(server, name, headers={"wsh-role": "agent"})
    with person.connection, agent.connection:
        person.say(type="take_over")
        person.read_until(lambda: person.was_told("taken"), "the person's take-over")
        for action in ("hand_back", "take_over"):
            agent.told.clear()
            agent.say(type=action)
            agent.read_until(lambda: agent.was_told("error"), f"the refusal of {action}")
            assert agent.told[-1]["code"] == "forbidden"
        agent.connection.send(b"from the agent\r")
        refused = server.request("POST", f"/sessions/{name}/input", b"x", headers={"wsh-role": "agent"})
        assert refused.code == "session_taken"
        person.connection.send(b"from the person\r")
        agent.read_until(lambda: "from the person" in agent.lines, "what the person typed")
        assert "from the agent" not in agent.lines
        person.say(type="hand_back")
        person.told.clear()
        person.read_until(lambda: person.was_told("taken"), "the end of it")
        assert server.request("POST", f"/sessions/{name}/input", b"x", headers={"wsh-role": "agent"}).status < 300


def test_a_viewer_that_goes_away_hands_back(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    person = look(server, name)
    with person.connection:
        person.say(type="take_over")
        person.read_until(lambda: person.was_told("taken"), "the take-over")

    def is_taken() -> bool:
        return server.request("POST", f"/sessions/{name}/input", b"x", headers={"wsh-role": "agent"}).status < 300

    wait_until(is_taken, "an agent's input to be taken again")


def test_who_typed_last_is_told(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    person = look(server, name)
    with person.connection:
        person.connection.send(b"hello\r")
        person.read_until(lambda: "hello" in person.lines, "the echo")
        told = json.dumps(server.get(f"/sessions/{name}/state"))
        assert "person" in told, told


def test_a_viewer_asks_for_earlier_lines_as_it_needs_them(server: RunningServer, open_session: Open) -> None:
    name = open_session("sh -c 'seq 1 300; exec cat'")
    settle(server, name)
    url = f"{server.ws_url}/sessions/{name}/ws/view?rows=24&cols=80&scrollback=50"
    person = Looking(connect(url, additional_headers=server.auth, max_size=None), 24, 80)
    with person.connection:
        person.read_until(lambda: "300" in person.lines, "the picture")
        (told,) = [one for one in person.told if one["type"] == "scrollback"]
        assert (told["asked"], told["lines"], told["more"], told["first"]) == (50, 50, True, 0)
        person.say(type="scrollback", lines=100_001)
        person.read_until(lambda: person.was_told("error"), "the refusal")
        person.told.clear()
        person.say(type="scrollback", lines=1000)
        numbers = [str(number) for number in range(1, 301)]
        person.read_until(lambda: person.terminal.scrollback(limit=1000).lines[:300] == numbers, "all lines, once")
        assert person.told[0]["more"] is False


def test_a_viewer_that_reads_no_answers_is_dismissed(places: Places) -> None:
    with running_server(places, environ={"WSH_SERVER_CLIENT_BUFFER_BYTES": str(64 * 1024)}) as server:
        server.request("POST", "/sessions", {"name": "s", "command": "cat"})
        # A unix socket holds little by itself, and this client reads nothing ahead.
        path = "ws://localhost/sessions/s/ws/view"
        with unix_connect(str(server.socket), path, max_size=None, max_queue=1, ping_interval=None) as viewer:
            for _ in range(8000):
                viewer.send("{")
            received: list[int] = []

            def read_all() -> None:
                while True:
                    received.append(len(viewer.recv(timeout=HANG_S)))

            with pytest.raises(ConnectionClosed) as caught:
                read_all()
            assert caught.value.rcvd is not None and caught.value.rcvd.code == 1013
            assert sum(received) < 800_000, "what was not read stays within bounds"
