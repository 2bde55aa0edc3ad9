"""What people type at viewers, on its way to the program: at once where it can be, else in order and bounded, never blocking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from wsh.session.event import Actor
from wsh.wire.error import SessionExited, WshError

if TYPE_CHECKING:
    from wsh.session.session import Session

WAITING_BYTES = 16 << 20
"""Typed and pasted bytes that may wait for a program that does not read."""
_AT_ONCE_BYTES = 65536


class Typing:
    def __init__(self, session: Session, on_error: Callable[[Actor, WshError], None]) -> None:
        """`on_error` hears whose input was refused, and why."""
        self._session = session
        self._on_error = on_error
        self._waiting: asyncio.Queue[tuple[bytes, Actor] | Callable[[], None]] = asyncio.Queue()
        self._sending = False
        self._waiting_bytes = 0
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._sending = False
        self._task = asyncio.ensure_future(self._run())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def put(self, data: bytes, actor: Actor) -> bool:
        """Take what was typed; False if there is no room for it."""
        try:
            if self._waiting.empty() and not self._sending:
                data = data[self._session.input.send_at_once(data, actor) :]
                if not data:
                    return True
        except SessionExited:
            return True  # the picture says so already
        if self._waiting_bytes + len(data) > WAITING_BYTES:
            return False
        self._waiting_bytes += len(data)
        self._waiting.put_nowait((data, actor))
        return True

    def after(self, then: Callable[[], None]) -> None:
        """Call `then` when what was put before is with the program; at once if nothing waits."""
        if self._waiting.empty() and not self._sending:
            then()
        else:
            self._waiting.put_nowait(then)

    async def _run(self) -> None:
        put_off: list[tuple[bytes, Actor] | Callable[[], None]] = []
        while True:
            item = put_off.pop() if put_off else await self._waiting.get()
            if not isinstance(item, tuple):
                item()
                self._sending = False
                continue
            data, actor = item
            self._waiting_bytes -= len(data)
            while not self._waiting.empty() and len(data) < _AT_ONCE_BYTES:
                more = self._waiting.get_nowait()
                if not isinstance(more, tuple) or more[1] != actor:
                    put_off.append(more)
                    break
                self._waiting_bytes -= len(more[0])
                data += more[0]
            self._sending = True
            try:
                await self._send(data, actor)
            finally:
                self._sending = bool(put_off)

    async def _send(self, data: bytes, actor: Actor) -> None:
        try:
            await self._session.input.send(data, actor)
        except SessionExited:
            pass  # the picture says so already
        except WshError as error:
            self._on_error(actor, error)
