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
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                data = client.recv(65536)
                if not data:
                    return
                head += data
            server = socket.create_connection(self.target)
        except OSError:
            client.close()
            return
        start, _, rest = head.partition(b"\r\n")
        lines = rest.split(b"\r\n\r\n", 1)
        kept = [
            line for line in lines[0].split(b"\r\n") if not line.lower().startswith((b"connection:", b"authorization:"))
        ]
        kept += [b"Connection: close", b"Authorization: Bearer " + self.token.encode()]
        server.sendall(start + b"\r\n" + b"\r\n".join(kept) + b"\r\n\r\n" + lines[1])
        up = threading.Thread(target=_copy, args=(client, server), daemon=True)
        up.start()
        _copy(server, client)
        client.close()
        server.close()
        up.join(5)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
