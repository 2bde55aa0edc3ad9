"""A request whose connection ends unanswered, as when a server is killed: what may be asked twice is asked of the next one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from wsh.cli.request import call
from wsh.wire.error import ServerGone
from wsh.wire.system.place import Places

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


@pytest.fixture
def seen(places: Places) -> Iterator[list[bytes]]:
    """What came in at a server that closes its first connection without a word and answers the second."""
    places.socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    requests: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places.socket))
        listener.listen()

        def serve() -> None:
            for answer in (b"", ANSWER):
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    requests.append(connection.recv(65536))
                    connection.sendall(answer)

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        yield requests
        listener.shutdown(socket.SHUT_RDWR)
        server.join(60)


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_what_does_no_harm_twice_is_asked_again(seen: list[bytes], method: str) -> None:
    assert call(method, "/sessions/x") == {}
    assert len(seen) == 2 and seen[0] == seen[1]


def test_what_may_have_been_done_is_not_asked_again(seen: list[bytes]) -> None:
    with pytest.raises(ServerGone):
        call("POST", "/sessions/x/input", body=b"rm\r")
    assert len(seen) == 1
