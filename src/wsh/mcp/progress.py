"""Progress of one call: at most so many notifications a second, the latest wins, none after the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from wsh.wire.tool import Stream

Emit = Callable[[dict[str, object]], Awaitable[None]]


class ProgressThrottle:
    """Throttles what a tool reports. `report` is cheap and never waits; `close` ends it for good."""

    def __init__(self, token: str | int | None, request_id: object, tool: str, emit: Emit, per_second: float) -> None:
        self._token = token
        self._id = str(request_id)
        self._tool = tool
        self._emit = emit
        # A little more than the quotient: five at exactly a quarter of a second would be five within one second.
        self._interval_s = 1.04 / per_second
        self._next_s = 0.0
        self._count = 0
        self._latest: dict[str, object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._closed = False

    def report(self, message: str, *, stream: Stream = "info", phase: str = "progress") -> None:
        if self._token is None or self._closed:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._latest = {"message": message, "stream": stream, "phase": phase, "ts": now}
        if self._timer is None and self._sending is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, self._next_s - loop.time()), self._fire)

    def _fire(self) -> None:
        self._timer = None
        if not self._closed and self._latest is not None:
            self._sending = asyncio.ensure_future(self._send(self._latest))
            self._latest = None

    async def _send(self, fields: dict[str, object]) -> None:
        self._count += 1
        self._next_s = asyncio.get_running_loop().time() + self._interval_s
        try:
            await self._emit(
                {"progressToken": self._token, "progress": self._count, "id": self._id, "tool": self._tool} | fields
            )
        finally:
            self._sending = None
            if self._latest is not None and not self._closed:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(max(0.0, self._next_s - loop.time()), self._fire)

    def close(self) -> None:
        self._closed = True
        self._latest = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sending is not None:
            self._sending.cancel()
