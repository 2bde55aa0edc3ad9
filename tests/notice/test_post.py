"""One POST to somebody else's server, however that server behaves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from wsh.notice.post import Undelivered, check_url, post


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a server that reads what one client sends and then does `answer`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            try:
                answer(connection)
            except OSError:
                pass  # the client has hung up

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        thread.join()
        listener.close()


def send(url: str, timeout_s: float) -> None:
    post(check_url(url, loopback=True), {}, b"{}", timeout_s)


@pytest.mark.parametrize("begin", ["HTTP/1.1", "HTTP/1.1 200 OK\r\nX-Header: "])
def test_a_server_that_answers_byte_by_byte_holds_up_nothing(begin: str) -> None:
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(begin.encode())
        while not stop.wait(0.02):
            connection.sendall(b"x")

    with answering(drip) as url:
        # Ends the test where nothing else would.
        guard = threading.Timer(60, stop.set)
        guard.start()
        try:
            if "200" in begin:
                send(url, 0.5)  # it has said yes
            else:
                with pytest.raises(Undelivered, match="took too long") as refused:
                    send(url, 0.5)
                assert not refused.value.again
            assert not stop.is_set()
        finally:
            guard.cancel()
            stop.set()


def test_a_yes_counts_whatever_becomes_of_the_rest_of_the_answer() -> None:
    with answering(lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")) as url:
        send(url, 60)
