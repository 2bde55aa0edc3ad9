"""Frames over a TCP connection: size cap, heartbeats both ways, trace, one place that ends it.

Knows nothing of what frames mean. A line over the cap or a line that is no frame raises; the reader must answer
with an error frame, because a skipped frame may have been the one that mattered.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from wsh.bridge.fault import Dropped, FrameTooLarge
from wsh.bridge.frame import MAX_FRAME_BYTES, AnyFrame, Error, Frame, Heartbeat, HelloFrame, decode, encode

log = logging.getLogger("wsh.bridge")
trace_log = logging.getLogger("wsh.bridge.trace")

MISSED_HEARTBEATS = 3
"""Silence of this many intervals is the end of a connection."""
UNSENT_BYTES = 64 * 1024 * 1024
"""A peer that leaves this much unread is gone."""


class FrameStream:
    """One connection. Owned by one reader; `send` may be called from anywhere on the loop."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        trace: bool = False,
        label: str = "",
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.max_frame_bytes = max_frame_bytes
        self.trace = trace
        self.label = label
        self.last_heard = asyncio.get_running_loop().time()
        self._beats_unanswered = 0
        self._beats: asyncio.Task[None] | None = None
        sock = writer.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def read(self) -> AnyFrame:
        """The next frame. Raises Dropped at the end, Malformed or FrameTooLarge for a line that is no frame."""
        try:
            line = await self.reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as over:
            raise FrameTooLarge(
                f"A frame of more than {self.max_frame_bytes} bytes was sent.",
                frame_bytes=over.consumed,
                max_frame_bytes=self.max_frame_bytes,
            ) from None
        except asyncio.IncompleteReadError as short:
            if short.partial:
                raise Dropped("The connection ended in the middle of a frame.") from None
            raise Dropped("The other end closed the connection.") from None
        except (OSError, RuntimeError) as problem:
            raise Dropped(f"The connection broke ({problem.__class__.__name__}).") from None
        if len(line) > self.max_frame_bytes:
            raise FrameTooLarge(
                f"A frame of {len(line)} bytes was sent.", frame_bytes=len(line), max_frame_bytes=self.max_frame_bytes
            )
        self._heard()
        frame = decode(line)
        if self.trace:
            self._trace("<-", frame)
        return frame

    def send(self, frame: Frame) -> None:
        """Queue `frame`. Raises Dropped if the connection is gone, FrameTooLarge before anything is sent."""
        line = encode(frame, self.max_frame_bytes)
        if self.writer.is_closing():
            raise Dropped("The connection is closed.")
        if self.writer.transport.get_write_buffer_size() > UNSENT_BYTES:
            self.abort()
            raise Dropped("The other end does not read; the connection was given up.")
        if self.trace:
            self._trace("->", frame)
        self.writer.write(line)

    async def drain(self) -> None:
        """Wait until the peer has taken most of what was sent."""
        try:
            await self.writer.drain()
        except OSError as problem:
            raise Dropped(f"The connection broke ({problem.__class__.__name__}).") from None

    async def refuse(self, code: str, message: str, **details: object) -> None:
        """Say why, then end the connection."""
        try:
            self.send(Error(code=code, message=message, fatal=True, details=dict(details)))
            async with asyncio.timeout(1):
                await self.drain()
        except (Dropped, FrameTooLarge, TimeoutError):
            pass
        await self.aclose()

    def start_heartbeats(self, interval_s: float, lost: Callable[[], None]) -> None:
        """Send one every `interval_s`; call `lost` once when the other end has been silent too long."""
        # Silence counts from now: the first frame may have taken long to be understood.
        self._heard()
        self._beats = asyncio.create_task(self._beat(interval_s, lost), name=f"bridge-heartbeat {self.label}")

    async def _beat(self, interval_s: float, lost: Callable[[], None]) -> None:
        seq = 0
        while True:
            await asyncio.sleep(interval_s)
            if self.is_silent:
                log.warning("bridge %s: no sign of life for %d heartbeats", self.label, MISSED_HEARTBEATS)
                lost()
                return
            try:
                self.send(Heartbeat(seq=seq))
            except Dropped:
                lost()
                return
            seq += 1
            self._beats_unanswered += 1

    @property
    def is_silent(self) -> bool:
        """Whether the other end let our last heartbeats pass. Counted in beats: time in which we had no processor is no silence of theirs."""
        return self._beats_unanswered >= MISSED_HEARTBEATS

    def _heard(self) -> None:
        self.last_heard = asyncio.get_running_loop().time()
        self._beats_unanswered = 0

    def abort(self) -> None:
        """End at once, leaving unsent frames unsent. The reader sees Dropped."""
        self.writer.transport.abort()

    async def aclose(self) -> None:
        if self._beats is not None and self._beats is not asyncio.current_task():
            self._beats.cancel()
            await asyncio.gather(self._beats, return_exceptions=True)
        self.writer.close()
        try:
            async with asyncio.timeout(1):
                await self.writer.wait_closed()
        except (OSError, TimeoutError):
            self.writer.transport.abort()
            await asyncio.sleep(0)  # the transport lets go of its socket on the next turn

    def _trace(self, arrow: str, frame: Frame) -> None:
        if isinstance(frame, HelloFrame):
            frame = frame.model_copy(update={"token": "…"})
        text = frame.model_dump_json(exclude_none=True)
        trace_log.info("%s %s %s", self.label, arrow, text if len(text) <= 2000 else text[:2000] + "…")
