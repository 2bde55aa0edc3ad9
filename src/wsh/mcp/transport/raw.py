"""What lies below ASGI, as far as lines without HTTP around them need it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class RawConnection(Protocol):
    def take_over(self, on_bytes: Callable[[bytes], None], on_end: Callable[[], None]) -> None: ...

    def write(self, data: bytes) -> None: ...

    @property
    def is_full(self) -> bool: ...

    async def drain(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


class RawOut:
    """Lines to the other end. What is written after its end goes nowhere."""

    def __init__(self, connection: RawConnection) -> None:
        self._connection = connection

    def write_now(self, line: bytes) -> bool:
        if self._connection.is_full:
            return False
        self._connection.write(line)
        return True

    async def write(self, line: bytes) -> None:
        while self._connection.is_full:
            await self._connection.drain()
        self._connection.write(line)
