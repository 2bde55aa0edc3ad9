"""Taking over from a server that gives way: an ephemeral one, or one that a client started in place of a persistent one.

Such a server is asked to end and to keep its sessions; then its lock, its socket and its port are ours. Standard library
only, like `listen`.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Callable

from wsh.http.server.listen import Doors, ServerRuns
from wsh.wire.system.place import Places

log = logging.getLogger("wsh.http")

_RECORD_S = 5.0
"""A server that has just begun may not have said yet what it is."""
_END_S = 30.0
_ASK = b"POST /server/stop?keep=true HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def take_over(places: Places, open_again: Callable[[], Doors]) -> Doors:
    """Ask the server that runs to give way, and open the doors after it. Raises ServerRuns if it does not.

    While no server that lives has said what it is, the one that was met may have ended: then the doors are free.
    """
    latest = time.monotonic() + _RECORD_S
    while (record := _read_record(places)) is None:
        try:
            return open_again()
        except ServerRuns:
            if time.monotonic() >= latest:
                raise
            time.sleep(0.02)
    gives_way, pid = record
    if not gives_way:
        raise ServerRuns(f"a server named {places.server!r} runs already")
    log.info("taking over from the server with pid %s; its sessions stay", pid)
    _ask_to_end(places)
    deadline = time.monotonic() + _END_S
    while True:
        try:
            return open_again()
        except ServerRuns:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.005)


def _read_record(places: Places) -> tuple[bool, object] | None:
    """Whether the server that runs gives way, and its pid. None if it has not said yet, or one that has ended has."""
    try:
        found = json.loads(places.runtime_info.read_bytes())
        gives_way, pid = bool(found.get("ephemeral") or found.get("stand_in")), found.get("pid")
    except (OSError, ValueError, AttributeError):
        return None
    return None if _has_ended(pid) else (gives_way, pid)


def _has_ended(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _ask_to_end(places: Places) -> None:
    """Over its own socket, where it knows us as the owner. One that has gone meanwhile need not be asked."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(_END_S)
        try:
            sock.connect(str(places.socket))
            sock.sendall(_ASK)
            status = sock.recv(64).split(b" ")[1:2]
        except (FileNotFoundError, ConnectionError):
            return
        except OSError as problem:
            raise ServerRuns(f"a server named {places.server!r} runs already and does not answer ({problem})") from None
    if status not in ([b"202"], [b"503"]):
        raise ServerRuns(f"a server named {places.server!r} runs already and does not give way")
