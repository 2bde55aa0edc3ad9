"""The pipe between the two processes of the program: the core, which holds everything, and the window, which draws.

Values of `scene` travel whole, each behind its length. Both ends are the same program of the same user on a socket pair that nobody else can
open, which is why they may be pickled.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Iterator
from typing import Any

_LENGTH = struct.Struct("!I")
_AT_ONCE = 1 << 20


def pack(value: object) -> bytes:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


class Unpacker:
    """Bytes as they come, values as they are whole."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        self._held += data
        at = 0
        while len(self._held) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._held, at)
            end = at + _LENGTH.size + size
            if len(self._held) < end:
                break
            value = pickle.loads(memoryview(self._held)[at + _LENGTH.size : end])
            at = end
            yield value
        # A view of it is never kept, so it may shrink here.
        del self._held[:at]


class WindowLink:
    """The window's end. Writing waits for the core, which always reads; reading never waits."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._unpacker = Unpacker()
        self.closed = False

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, verb: str, *arguments: object) -> None:
        """Ask the core to do something; nothing happens once it is gone."""
        if not self.closed:
            try:
                self._end.sendall(pack((verb, arguments)))
            except OSError:
                self.closed = True

    def receive(self) -> list[object]:
        """What has arrived. `closed` says that nothing more will."""
        try:
            data = self._end.recv(_AT_ONCE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return []
        return list(self._unpacker.feed(data))
