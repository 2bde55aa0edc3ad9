"""`wsh` on a machine of a test: what sshd executes there is a small program that has the real one forked by the warm process.

    with far_starts(folder / "bin"):  # which then has to stand in PATH there
        ...

It hands over its words, environment, working folder and descriptors, and ends with the status of what was forked for it. Where only an executed
interpreter will do, WarmPopen executes one.
"""

from __future__ import annotations

import array
import marshal
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import HANG_S
from tests.support.warm import WarmPopen

_ORDER_BYTES = 64 * 1024
_CALLER = """#!{python} -IS
import _socket, array, marshal, os, sys
starts = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
starts.connect({address!r})
order = marshal.dumps((sys.argv[1:], dict(os.environ), os.getcwd()))
starts.sendmsg([order], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", (0, 1, 2)))])
for fd in (0, 1, 2):
    os.close(fd)
os._exit(int(starts.recv(64) or 1))
"""


@contextmanager
def far_starts(folder: Path) -> Iterator[None]:
    """Put a `wsh` into this new folder, and start what is asked for by it."""
    folder.mkdir(mode=0o700)
    running: list[threading.Thread] = []

    def listen() -> None:
        while True:
            try:
                caller, _ = door.accept()
            except OSError:  # shut down
                return
            running.append(threading.Thread(target=_start, args=(caller,)))
            running[-1].start()

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind("")
        door.listen()
        program = folder / "wsh"
        program.write_text(_CALLER.format(python=sys.executable, address=door.getsockname()))
        program.chmod(0o700)
        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield
        finally:
            door.shutdown(socket.SHUT_RDWR)
            for thread in (listener, *running):
                thread.join(HANG_S)
    assert not any(thread.is_alive() for thread in running), "a `wsh` that was started there has not ended"


def _start(caller: socket.socket) -> None:
    with caller:
        fds: array.array[int] = array.array("i")
        order, rights, _, _ = caller.recvmsg(_ORDER_BYTES, socket.CMSG_SPACE(3 * fds.itemsize))
        for _, _, data in rights:
            fds.frombytes(data)
        try:
            words, environ, cwd = marshal.loads(order)
            command = [sys.executable, "-m", "wsh.cli.main", *words]
            stdin, stdout, stderr = fds
            process = WarmPopen(
                command, stdin=stdin, stdout=stdout, stderr=stderr, env=environ, cwd=cwd, start_new_session=True
            )
        finally:
            for fd in fds:
                os.close(fd)
        caller.send(str(process.wait() & 0xFF).encode())
