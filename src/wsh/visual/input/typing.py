"""What people type at viewers, on its way to the program: at once where it can be, else in order and bounded, never blocking.

What waits is written also when those who typed it have left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from wsh.session.event import Actor
from wsh.session.input.receipt import Receipt
from wsh.wire.error import SessionExited, WshError

if TYPE_CHECKING:
    from wsh.session.session import Session

WAITING_BYTES = 16 << 20
"""Typed and pasted bytes that may wait for a program that does not read."""
_AT_ONCE_BYTES = 65536


@dataclass(frozen=True)
class _Typed:
    data: bytes
    actor: Actor
    receipt: Receipt


_Item: TypeAlias = _Typed | Callable[[], None]


class Typing:
    def __init__(self, session: Session, on_error: Callable[[Actor, WshError], None]) -> None:
        """`on_error` hears whose input was refused, and why."""
        self._session = session
        self._on_error = on_error
        self._waiting: deque[_Item] = deque()
        self._sending = False
        self._waiting_bytes = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def _idle(self) -> bool:
        return not self._waiting and not self._sending

    def put(self, data: bytes, actor: Actor, receipt: Receipt) -> bool:
        """Take what was typed; False if there is no room for it."""
        try:
            if self._idle:
                data = data[self._session.input.send_at_once(data, actor, receipt) :]
                if not data:
                    return True
        except SessionExited:
            self._session.input.settle(receipt, len(data))  # the picture says so already
            return True
        if self._waiting_bytes + len(data) > WAITING_BYTES:
            self.after(lambda: self._session.input.settle(receipt, len(data)))
            return False
        self._waiting_bytes += len(data)
        self._append(_Typed(data, actor, receipt))
        return True

    def after(self, then: Callable[[], None]) -> None:
        """Call `then` when what was put before is with the program; at once if nothing waits."""
        if self._idle:
            then()
        else:
            self._append(then)

    def _append(self, item: _Item) -> None:
        self._waiting.append(item)
        if self._task is None or self._task.done():
            self._task = self._session.lasting.start(self._run())

    async def _run(self) -> None:
        while self._waiting:
            item = self._waiting.popleft()
            if not isinstance(item, _Typed):
                item()
                continue
            parts = [item.data]
            size = len(item.data)
            while self._waiting and size < _AT_ONCE_BYTES:
                more = self._waiting[0]
                if not isinstance(more, _Typed) or (more.actor, more.receipt) != (item.actor, item.receipt):
                    break
                self._waiting.popleft()
                parts.append(more.data)
                size += len(more.data)
            self._waiting_bytes -= size
            self._sending = True
            try:
                await self._send(b"".join(parts), item.actor, item.receipt)
            finally:
                self._sending = False

    async def _send(self, data: bytes, actor: Actor, receipt: Receipt) -> None:
        begun = receipt.written
        try:
            await self._session.input.send(data, actor, receipt=receipt)
        except WshError as error:
            if not isinstance(error, SessionExited):  # the picture says so already
                self._on_error(actor, error)
            self._session.input.settle(receipt, len(data) - (receipt.written - begun))
