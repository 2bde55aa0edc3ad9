"""The raw WebSocket: a replay first, then every byte; keys in; slow clients resynchronised."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.http.route.test_session import settle, type_in
from tests.support.serving import RunningServer
from tests.support.waiting import HANG_S
from wsh.terminal.terminal import Terminal

Open = Callable[..., str]


def attach(server: RunningServer, name: str) -> ClientConnection:
    return connect(f"{server.ws_url}/sessions/{name}/ws/raw", additional_headers=server.auth, max_size=None)


def read_until(
    connection: ClientConnection, terminal: Terminal, condition: Callable[[list[str]], object], what: str
) -> None:
    """Feed what comes to the terminal until its lines meet the condition."""
    while not condition(lines := [str(line) for line in terminal.screen(False).lines]):
        try:
            data = connection.recv(timeout=HANG_S)
        except TimeoutError:
            raise AssertionError(f"waited {HANG_S:g} s for {what}; there is:\n" + "\n".join(lines)) from None
        assert isinstance(data, bytes)
        terminal.feed(data)


def test_a_client_that_comes_late_sees_the_same_screen(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    settle(server, name)
    type_in(server, name, "for i in $(seq 50); do printf '\\033[3%dmrow %d\\033[0m\\n' $((i%8)) $i; done\r")
    settle(server, name)
    with attach(server, name) as connection, Terminal(24, 80) as mine:
        truth = server.get(f"/sessions/{name}/screen")

        def is_same(_: list[str]) -> bool:
            shown = mine.screen(True).to_wire()
            return bool((shown["lines"], shown["cursor"]) == (truth["lines"], truth["cursor"]))

        read_until(connection, mine, is_same, "the same screen")
        assert mine.total_lines - mine.first_line >= truth["total_lines"], "scrollback came along"
        connection.send(b"echo more-$((2+3))\r")
        read_until(connection, mine, lambda lines: "more-5" in lines, "the output")
        settle(server, name)
        truth = server.get(f"/sessions/{name}/screen")
        read_until(connection, mine, is_same, "the same screen")


def test_two_clients_see_the_same_and_both_can_type(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    with attach(server, name) as one, attach(server, name) as two, Terminal(24, 80) as a, Terminal(24, 80) as b:
        one.send(b"from one\r")
        two.send("from two\r")
        for client, terminal in ((one, a), (two, b)):
            read_until(client, terminal, lambda lines: lines.count("from one") == lines.count("from two") == 2, "both")
        assert a.screen(False).lines == b.screen(False).lines
        assert server.get(f"/sessions/{name}")["clients"] == 2


def test_the_end_of_the_program_ends_the_stream_after_its_last_words(server: RunningServer, open_session: Open) -> None:
    name = open_session("sh -c 'read x; echo good-bye'")
    with attach(server, name) as connection, Terminal(24, 80) as mine:
        connection.send(b"\r")
        with pytest.raises(ConnectionClosed) as caught:
            read_until(connection, mine, lambda _: False, "the end")
        assert caught.value.rcvd is not None and caught.value.rcvd.code == 1000
        assert "good-bye" in mine.screen(False).lines
    with attach(server, name) as again, Terminal(24, 80) as mine:
        with pytest.raises(ConnectionClosed):
            read_until(again, mine, lambda _: False, "the end")
        assert "good-bye" in mine.screen(False).lines


def test_a_client_attached_inside_an_escape_sequence_sees_no_debris(server: RunningServer, open_session: Open) -> None:
    name = open_session('sh -c \'printf "\\\\033]2;half"; read x; printf " title\\\\007done\\\\n"; cat\'')
    settle(server, name)
    with attach(server, name) as connection, Terminal(24, 80) as mine:
        connection.send(b"\r")
        read_until(connection, mine, lambda lines: "done" in lines, "the last word")
        assert mine.screen(False).lines == server.get(f"/sessions/{name}/screen?format=plain")["lines"]
