"""Runs inside a pane of tmux: what comes on a unix socket is printed, what the terminal answers goes back."""

from __future__ import annotations

import os
import selectors
import socket
import sys
import tty


def main() -> None:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    tty.setraw(0)
    both = selectors.DefaultSelector()
    both.register(0, selectors.EVENT_READ)
    both.register(connection, selectors.EVENT_READ)
    while True:
        for key, _ in both.select():
            data = os.read(key.fd, 65536)
            if not data:
                return
            view = memoryview(data)
            while view:
                view = view[os.write(1 if key.fileobj is connection else connection.fileno(), view) :]


if __name__ == "__main__":
    main()
