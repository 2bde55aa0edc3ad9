"""Frames between keeper and server: a length, JSON, and descriptors that travel with its first byte."""

from __future__ import annotations

import _socket
import json
from array import array

TYPE_CHECKING = False  # importing typing would cost the keeper a megabyte
if TYPE_CHECKING:
    pass

    from wsh.wire.json.object import JsonObject


MAX_FRAME_BYTES = 8 * 1024 * 1024
MAX_FDS = 253
HEADER_BYTES = 4
SOL_SOCKET = _socket.SOL_SOCKET
SCM_RIGHTS = _socket.SCM_RIGHTS
ANCILLARY_BYTES = _socket.CMSG_SPACE(MAX_FDS * 4)


class FrameError(Exception):
    """The other side does not speak our frames."""


def encode(message: JsonObject) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"a message of {len(body)} bytes is too large")
    return len(body).to_bytes(HEADER_BYTES, "little") + body


class Decoder:
    """Bytes and descriptors in, messages out. Owns descriptors until a message claims them."""

    __slots__ = ("_data", "_fds")

    def __init__(self) -> None:
        self._data = bytearray()
        self._fds: list[int] = []

    def push(self, data: bytes, ancillary: list[tuple[int, int, bytes]]) -> None:
        self._data += data
        for level, kind, payload in ancillary:
            if level == SOL_SOCKET and kind == SCM_RIGHTS:
                numbers = array("i")
                numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
                self._fds.extend(numbers)

    def pop(self) -> JsonObject | None:
        """The next whole message, or None. `take_fds` gives what came with it."""
        if len(self._data) < HEADER_BYTES:
            return None
        length = int.from_bytes(self._data[:HEADER_BYTES], "little")
        if length > MAX_FRAME_BYTES:
            raise FrameError(f"a frame of {length} bytes is too large")
        if len(self._data) < HEADER_BYTES + length:
            return None
        body = bytes(self._data[HEADER_BYTES : HEADER_BYTES + length])
        del self._data[: HEADER_BYTES + length]
        try:
            message = json.loads(body)
        except ValueError as problem:
            raise FrameError(f"a frame is not JSON: {problem}") from None
        if not isinstance(message, dict):
            raise FrameError("a frame is not a JSON object")
        return message

    @property
    def fd_count(self) -> int:
        """Descriptors that came and that no message has claimed."""
        return len(self._fds)

    def take_fds(self, count: int) -> list[int]:
        if count > len(self._fds):
            raise FrameError(f"{count} descriptors announced, {len(self._fds)} came")
        taken = self._fds[:count]
        del self._fds[:count]
        return taken

    def take_all_fds(self) -> list[int]:
        return self.take_fds(len(self._fds))


def rights(fds: list[int]) -> list[tuple[int, int, array[int]]]:
    return [(SOL_SOCKET, SCM_RIGHTS, array("i", fds))] if fds else []
