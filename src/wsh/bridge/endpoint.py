"""Where a desktop on this machine listens: the runtime file with its port and token.

Written by the desktop with mode 0600, read by the server of the same user. A file of somebody else, or one that others
can read, is not believed.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from wsh.wire.system.place import ensure_private, write_private


@dataclass(frozen=True)
class Endpoint:
    host: str
    port: int
    token: str = field(repr=False)
    pid: int | None = None


def write_endpoint(path: Path, endpoint: Endpoint) -> None:
    ensure_private(path.parent)
    document = {"host": endpoint.host, "port": endpoint.port, "token": endpoint.token, "pid": endpoint.pid}
    write_private(path, json.dumps(document).encode())


def remove_endpoint(path: Path, endpoint: Endpoint) -> None:
    """Remove the file if it is still the one that `endpoint` wrote."""
    if find_endpoint(path) == endpoint:
        path.unlink(missing_ok=True)


def find_endpoint(path: Path) -> Endpoint | None:
    """The endpoint in the file, or None when there is none that can be believed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(file.fileno())
        if info.st_uid != os.getuid() or stat.S_IMODE(info.st_mode) & 0o077 or info.st_size > 65_536:
            return None
        try:
            document = json.loads(file.read())
        except ValueError:
            return None
    if not isinstance(document, dict):
        return None
    host, port, token, pid = (document.get(key) for key in ("host", "port", "token", "pid"))
    if not (isinstance(host, str) and isinstance(port, int) and 0 < port < 65536 and isinstance(token, str) and token):
        return None
    return Endpoint(host, port, token, pid if isinstance(pid, int) else None)
