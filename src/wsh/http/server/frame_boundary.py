"""Where a client's WebSocket frames begin and end, without looking at what they carry.

A key that somebody types is one short message in one piece. Where a piece of the stream is known to begin between two messages, such a message is read here in a
few steps; everything else is left to the library.
"""

from __future__ import annotations

from typing import Final

_BINARY: Final[int] = 0x82
_CLOSE: Final[int] = 8
_NO_MASK: Final[bytes] = bytes(4)


class FrameBoundary:
    """Follows a stream from the end of its handshake on."""

    __slots__ = ("_closed", "_fragmented", "_head", "_missing")

    def __init__(self) -> None:
        self._missing = 0
        """Bytes still to come of the frame that has begun."""
        self._head = b""
        """The beginning of a frame whose length is not known yet."""
        self._fragmented = self._closed = False

    @property
    def is_between_messages(self) -> bool:
        return not (self._missing or self._head or self._fragmented or self._closed)

    def follow(self, data: bytes) -> None:
        """Pass over the next piece of the stream."""
        data, self._head = self._head + data, b""
        at = self._missing
        while at < len(data):
            end = _find_end(data, at)
            if end is None:
                self._head = data[at:]
                at = len(data)
                break
            opcode = data[at] & 0x0F
            if opcode < _CLOSE:
                self._fragmented = not data[at] & 0x80
            elif opcode == _CLOSE:
                self._closed = True
            at = end
        self._missing = at - len(data)


def _find_end(data: bytes, at: int) -> int | None:
    """Where the frame at `at` ends; None if that is not told yet."""
    if len(data) < at + 2:
        return None
    masked, size = data[at + 1] & 0x80, data[at + 1] & 0x7F
    start = at + 2
    if size >= 126:
        width = 2 if size == 126 else 8
        if len(data) < start + width:
            return None
        size = int.from_bytes(data[start : start + width], "big")
        start += width
    return start + (4 if masked else 0) + size


def read_short(data: bytes) -> bytes | None:
    """The payload, if `data` is exactly one short binary message of a client; else None."""
    size = len(data) - 6
    if not 0 < size < 126 or data[0] != _BINARY or data[1] != 0x80 | size:
        return None
    mask, payload = data[2:6], data[6:]
    if mask == _NO_MASK:
        return payload
    key = (mask * 32)[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
