"""A door-keeper for judges that know no tokens: passes one request per connection on, with ours added."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self


class TokenProxy:
    """Listens on a loopback port of its own. `target` may be set after the port is known."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.target: tuple[str, int] | None = None
        self.token = ""
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        assert self.target is not None
        with client:
            try:
                head = b""
                while b"\r\n\r\n" not in head:
                    data = client.recv(65536)
                    if not data:
                        return
                    head += data
                with socket.create_connection(self.target) as server:
                    server.sendall(self._rewrite(head))
                    up = threading.Thread(target=_copy, args=(client, server), daemon=True)
                    up.start()
                    _copy(server, client)
                    _shut(client)
                    _shut(server)
                    up.join(5)
            except OSError:
                pass

    def _rewrite(self, received: bytes) -> bytes:
        head, _, body = received.partition(b"\r\n\r\n")
        start, *lines = head.split(b"\r\n")
        ours = (b"connection:", b"authorization:")
        kept = [line for line in lines if not line.lower().startswith(ours)]
        kept += [b"Connection: close", b"Authorization: Bearer " + self.token.encode()]
        return b"\r\n".join([start, *kept]) + b"\r\n\r\n" + body


def _copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        _shut(source)
        _shut(sink)


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
