"""Quick starts of keepers: a small interpreter that has imported a keeper's modules forks for each start.

Usage: warm_keeper.py LIFE_FD LISTEN_FD KEEPER_MAIN ROOM, executed by path with the options and the environment of a keeper. ROOM is as long as the words of a
keeper may be. Each connection brings one order and the three descriptors, and gets the exit status. Ends when the other end of LIFE_FD is closed.
"""

from __future__ import annotations

import _socket
import array
import ctypes
import gc
import json
import os
import resource
import select
import sys
from types import CodeType

MAX_BYTES = 64 * 1024


def serve(life: int, listener: _socket.socket, main: CodeType) -> None:
    poll = select.poll()
    poll.register(life, 0)
    poll.register(listener, select.POLLIN)
    while life not in (ready := dict(poll.poll())):
        if listener.fileno() in ready:
            try:
                fd, _ = listener._accept()  # type: ignore[attr-defined]
            except OSError:  # gone again
                continue
            caller = _socket.socket(fileno=fd)
            _answer(caller, main)
            caller.close()


def _answer(caller: _socket.socket, main: CodeType) -> None:
    """A caller may be killed at any moment; that is no end of this process."""
    fds: array.array[int] = array.array("i")
    try:
        order, rights, _, _ = caller.recvmsg(MAX_BYTES, _socket.CMSG_SPACE(3 * fds.itemsize))
    except OSError:
        return
    for _, _, data in rights:
        fds.frombytes(data)
    pid = os.fork() if len(fds) == 3 else None
    if pid == 0:
        try:
            words, limits = json.loads(order)
            _become(words, limits, fds, main)
        except SystemExit as end:
            os._exit(int(end.code or 0))
        finally:
            os._exit(1)
    for fd in fds:
        os.close(fd)
    if pid is not None:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        try:
            caller.send(str(status).encode())
        except OSError:
            pass


def _become(words: list[str], limits: list[tuple[int, tuple[int, int]]], fds: array.array[int], main: CodeType) -> None:
    # Above the three, or one would be overwritten before it is copied.
    for number, fd in enumerate([os.dup2(fd, 1000 + number) for number, fd in enumerate(fds)]):
        os.dup2(fd, number)
    os.closerange(3, 1003)
    for number, limit in limits:
        resource.setrlimit(number, limit)
    _show(words)
    sys.argv[:] = words[words.index(main.co_filename) :]
    exec(main, {"__name__": "__main__", "__file__": main.co_filename})


def _show(words: list[str]) -> None:
    """Write the words where `/proc/PID/cmdline` is read from."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    shown = b"".join(os.fsencode(word) + b"\0" for word in words)
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, shown, len(shown))


if __name__ == "__main__":
    life, door, path = sys.argv[1:4]
    with open(path, "rb") as file:
        main = compile(file.read(), path, "exec")
    seen = {"__name__": "seen", "__file__": path}
    exec(main, seen)
    seen["_make_importable"]()  # type: ignore[operator]
    import wsh.process.keeper.daemon  # noqa: F401 - what takes the time

    gc.collect()
    gc.freeze()
    serve(int(life), _socket.socket(fileno=int(door)), main)
