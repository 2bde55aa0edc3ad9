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


def _pump(path: str) -> int:
    """Bytes both ways until either side ends. Blocking writes: a side that does not read slows the other down."""
    import select
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        polled = select.poll()
        polled.register(0, select.POLLIN)
        polled.register(server, select.POLLIN)
        while True:
            for fd, _ in polled.poll():
                data = os.read(fd, _PIECE_BYTES)
                if not data:
                    return 0
                if fd == 0:
                    server.sendall(data)
                else:
                    _write_all(data)


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]
