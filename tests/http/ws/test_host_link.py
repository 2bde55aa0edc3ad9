"""The link from another server: what it does not read is bounded, and a long answer leaves room for other frames."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, unix_connect

from tests.support.serving import running_server
from tests.support.waiting import wait_until
from wsh.host.carrier import ForwardedCall, ForwardedCaller
from wsh.wire.system.place import find_places

CHANGES = 250
TAGS = [f"{number:02}".ljust(60, "x") for number in range(40)]


@contextmanager
def _open_link(path: Path) -> Iterator[ClientConnection]:
    with unix_connect(str(path), "ws://localhost/host/link", max_queue=1, max_size=None, compression=None) as link:
        assert "welcome" in json.loads(link.recv(timeout=60))
        yield link


def _read_to_the_end(link: ClientConnection) -> tuple[int, int | None]:
    """How many characters came, and the code that the server closed with."""
    came = 0
    try:
        while True:
            came += len(link.recv(timeout=60))
    except ConnectionClosed as end:
        return came, end.rcvd.code if end.rcvd is not None else None


def test_a_link_that_is_not_read_is_cut_and_a_long_answer_comes_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
        (tmp_path / name).mkdir(mode=0o700)
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.setenv("WSH_SERVER_CLIENT_BUFFER_BYTES", "65536")
    with running_server(find_places()) as server:
        assert server.request("POST", "/sessions", {"name": "told", "command": "cat"}).status == 201

        with _open_link(server.socket) as unread:
            for number in range(CHANGES):
                change = {"add_tags" if number % 2 == 0 else "remove_tags": TAGS}
                assert server.request("PATCH", "/sessions/told", change).status == 200
            came, code = _read_to_the_end(unread)
        assert code == 1013
        assert came < CHANGES * 60 * len(TAGS), "what was told after the ceiling is not kept"

        long = {"name": "long", "command": "seq -w 10000; cat", "cols": 80}
        assert server.request("POST", "/sessions", long).status == 201
        wait_until(lambda: "10000" in server.request("GET", "/sessions/long/screen").body.decode(), "all lines")
        with _open_link(server.socket) as link:
            caller = ForwardedCaller("owner", "", "near")
            call = ForwardedCall("a" * 8, "get_scrollback", {"limit": 9000}, "long", caller, 60)
            link.send(json.dumps({"call": call.to_wire()}))
            pieces = list(link.recv_streaming())
            answer = json.loads("".join(map(str, pieces)))["answer"]
            assert len(answer["result"]["lines"]) == 9000, answer
            assert len(pieces) > 1, "other frames can come between the pieces of a long answer"
