"""A viewer's connection: a WebSocket on the server's unix socket, with no more of it than one viewer needs.

Nothing here waits once the connection is made, and no event loop is needed: the owner of a connection polls `fileno()` and calls `receive` and
`flush`. A key takes one system call from here to the server. What messages mean is not known here.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from wsh.wire.error import ServerGone, from_wire

HANDSHAKE_S = 30.0
Kind: TypeAlias = Literal["bytes", "text", "close"]
_OPCODES: dict[int, Kind] = {1: "text", 2: "bytes", 8: "close"}
_READ_BYTES = 64 * 1024


class WsMessage(NamedTuple):
    kind: Kind
    payload: bytes
    """For `close`: two bytes of code, then the reason."""


class WsLost(Exception):
    """The server hung up without a word."""


class WsClient:
    """An open connection. Frames are masked with zeros: on a unix socket there is no proxy to protect."""

    def __init__(self, sock: socket.socket, received: bytes = b"") -> None:
        sock.setblocking(False)
        self._socket = sock
        self._received = bytearray(received)
        self._read = memoryview(bytearray(_READ_BYTES))
        self._parts: list[bytes] = []
        self._kind: Kind = "bytes"
        self._unsent = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def unsent(self) -> int:
        """Bytes that the server has not taken yet."""
        return len(self._unsent)

    def send_bytes(self, data: bytes) -> None:
        self._send(0x82, data)

    def send_json(self, message: dict[str, object]) -> None:
        self._send(0x81, json.dumps(message).encode())

    def _send(self, first: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            head = bytes((first, 0x80 | size))
        elif size < 65536:
            head = struct.pack("!BBH", first, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", first, 0x80 | 127, size)
        self._unsent += head + b"\0\0\0\0" + payload
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes now."""
        if self._unsent:
            try:
                del self._unsent[: self._socket.send(self._unsent)]
            except BlockingIOError:
                pass
            except OSError:
                raise WsLost from None

    def receive(self) -> list[WsMessage]:
        """The messages that have arrived whole. Raises WsLost when the server is gone."""
        found: list[WsMessage] = []
        try:
            # Into memory that is there already: a fresh piece for every message costs three system calls.
            count = self._socket.recv_into(self._read)
            if not count:
                raise WsLost
            self._received += self._read[:count]
        except BlockingIOError:
            pass
        except OSError:
            raise WsLost from None
        at, buffer = 0, self._received
        while (frame := _next_frame(buffer, at)) is not None:
            first, start, at = frame
            self._take(first, bytes(buffer[start:at]), found)
        del buffer[:at]
        return found

    def _take(self, first: int, payload: bytes, found: list[WsMessage]) -> None:
        opcode = first & 0x0F
        if opcode == 9:
            self._send(0x8A, payload)
        elif opcode == 0 or opcode in _OPCODES:
            if opcode:
                self._kind = _OPCODES[opcode]
            self._parts.append(payload)
            if first & 0x80:
                found.append(WsMessage(self._kind, b"".join(self._parts)))
                self._parts = []

    def close(self) -> None:
        """Say goodbye as far as that is possible without waiting."""
        with contextlib.suppress(OSError, WsLost):
            self._send(0x88, b"\x03\xe8")
        self._socket.close()


def _next_frame(buffer: bytearray, at: int) -> tuple[int, int, int] | None:
    """(first byte, where the payload begins, where it ends) of the frame at `at`, if all of it is there."""
    if len(buffer) - at < 2:
        return None
    size, start = buffer[at + 1] & 0x7F, at + 2
    if size >= 126:
        width = 2 if size == 126 else 8
        if len(buffer) < start + width:
            return None
        size = int.from_bytes(buffer[start : start + width], "big")
        start += width
    return (buffer[at], start, start + size) if len(buffer) >= start + size else None


def open_ws_client(path: Path, target: str, wait: Callable[[socket.socket], None] = lambda _: None) -> WsClient:
    """Connect to the server's socket and upgrade. Raises what the server refuses with, or ServerGone.

    `wait` is called before the answer is read; it may return when there is something to read, or raise.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        sock.settimeout(HANDSHAKE_S)
        sock.connect(str(path))
        key = base64.b64encode(os.urandom(16)).decode()
        sock.sendall(
            (
                f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
            ).encode()
        )
        status, rest = _read_answer(sock, wait)
        if status != 101:
            raise _refusal(status, sock, rest)
        return WsClient(sock, rest)
    except (OSError, ValueError) as problem:
        sock.close()
        raise ServerGone(str(problem) or "it does not answer") from None
    except BaseException:
        sock.close()
        raise


def _read_answer(sock: socket.socket, wait: Callable[[socket.socket], None]) -> tuple[int, bytes]:
    """The status of an HTTP answer, and what came behind its headers."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        wait(sock)
        more = sock.recv(65536)
        if not more or len(answer) > 65536:
            raise ValueError("it hung up before it answered")
        answer += more
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), rest


def _refusal(status: int, sock: socket.socket, body: bytes) -> Exception:
    while True:
        try:
            return from_wire(json.loads(body)["error"])
        except (ValueError, KeyError, TypeError):
            more = sock.recv(65536)
            if not more or len(body) > 65536:
                return ServerGone(f"it answered with status {status}")
            body += more
