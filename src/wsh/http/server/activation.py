"""Listening sockets that a service manager opened for us, as systemd's socket units do. Standard library only."""

from __future__ import annotations

import os
import socket

_FIRST = 3


def take_inherited() -> list[socket.socket]:
    """The sockets passed to this very process; empty for most. The variables are removed, so that children see none."""
    count, pid = os.environ.pop("LISTEN_FDS", ""), os.environ.pop("LISTEN_PID", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdigit():
        return []
    found = []
    for number in range(_FIRST, _FIRST + int(count)):
        os.set_inheritable(number, False)
        one = socket.socket(fileno=number)
        one.setblocking(False)
        found.append(one)
    return found
