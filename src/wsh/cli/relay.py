from __future__ import annotations

import os
import sys

from wsh.cli.declare import Option, command, echo
from wsh.wire.json.text import write_json
from wsh.wire.system.runtime_path import server_socket

_PIECE_BYTES = 1 << 18


@command(
    "relay",
    Option("--facts", kind=bool, help="Print the server's socket and version as JSON instead."),
)
def relay(facts: bool) -> int:
    """Connect stdin and stdout with this user's server, which is started if none runs.

    This is how `wsh host` speaks to the server of another machine where sshd forbids forwarding.
    """
    import asyncio

    from wsh.client.launch import ensure_server

    asyncio.run(ensure_server())
    path = server_socket(os.environ)
    if facts:
        from wsh.wire.version import VERSION

        echo(write_json({"socket": path, "version": VERSION, "python": sys.executable}))
        return 0
    return _pump(path)


def _pump(path: str, stdin: int = 0, stdout: int = 1) -> int:
    """Bytes both ways until either side ends.

    A side that does not read holds up what goes to it and nothing else: the server takes no more while its own words are not taken.
    """
    import socket
    from threading import Thread

    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)

        def bring_up() -> None:
            try:
                while data := os.read(stdin, _PIECE_BYTES):
                    server.sendall(data)
                server.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the server is gone, which the other direction sees

        Thread(target=bring_up, daemon=True).start()
        while data := server.recv(_PIECE_BYTES):
            _write_all(stdout, data)
    return 0


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
