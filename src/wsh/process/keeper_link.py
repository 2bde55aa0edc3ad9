"""The server's end of the keeper's socket, on the event loop: requests with answers, events, descriptors."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from wsh.process.keeper import descriptor, frame
from wsh.wire.error import KeeperGone, TooLarge
from wsh.wire.json.object import JsonObject


class KeeperLink:
    """Owns the connected socket. `on_event` gets what was not asked for; `on_lost` is called once, with the reason."""

    def __init__(
        self,
        sock: socket.socket,
        on_event: Callable[[JsonObject, list[int]], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._sock = sock
        self._sock.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._on_event = on_event
        self._on_lost = on_lost
        self._decoder = frame.Decoder()
        self._waiting: dict[int, asyncio.Future[JsonObject]] = {}
        self._queue: list[tuple[memoryview, list[int]]] = []
        self._number = 0
        self._writing = False
        self.problem: str | None = None
        self._loop.add_reader(sock.fileno(), self._read)

    async def ask(self, message: JsonObject, fds: list[int] | None = None) -> JsonObject:
        """Send a request and wait for its answer. Raises KeeperGone.

        An answer that brings a child goes through `on_event` as it arrives, so that events after it find the child.
        """
        self._number += 1
        number = self._number
        future: asyncio.Future[JsonObject] = self._loop.create_future()
        self._waiting[number] = future
        try:
            self.tell({**message, "id": number}, fds)
            return await future
        finally:
            self._waiting.pop(number, None)

    def tell(self, message: JsonObject, fds: list[int] | None = None) -> None:
        """Send without waiting. The caller keeps its descriptors; duplicates travel. Raises TooLarge and OSError with nothing sent."""
        if self.problem is not None:
            raise KeeperGone(self.problem)
        if fds:
            message = {**message, "fds": len(fds)}
        try:
            data = memoryview(frame.encode(message))
        except frame.FrameError:
            raise TooLarge("What the keeper is asked to start", frame.MAX_FRAME_BYTES, "none") from None
        self._queue.append((data, descriptor.duplicate(fds or [])))
        self._write()

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self, problem: str = "the connection was closed here") -> None:
        if self.problem is not None:
            return
        self.problem = problem
        self._loop.remove_reader(self._sock.fileno())
        if self._writing:
            self._loop.remove_writer(self._sock.fileno())
        self._sock.close()
        for _, fds in self._queue:
            for fd in fds:
                os.close(fd)
        self._queue.clear()
        for fd in self._decoder.take_all_fds():
            os.close(fd)
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(KeeperGone(problem))
                future.exception()  # a question that was cancelled has nobody to retrieve this
        self._on_lost(problem)

    def _read(self) -> None:
        try:
            data, ancillary, flags, _ = self._sock.recvmsg(65_536, frame.ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as problem:
            self.close(str(problem))
            return
        truncated = bool(flags & socket.MSG_CTRUNC)
        self._decoder.push(data, ancillary)
        if not data:
            self.close("it closed the connection")
            return
        try:
            while self.problem is None and (message := self._decoder.pop()) is not None:
                count = int(message.get("fds", 0))
                if truncated and "child" in message and "re" in message:
                    count = min(count, self._decoder.fd_count)
                self._dispatch(message, self._decoder.take_fds(count))
        except frame.FrameError as problem:
            self.close(str(problem))

    def _dispatch(self, message: JsonObject, fds: list[int]) -> None:
        future = self._waiting.pop(message["re"], None) if "re" in message else None
        if "re" not in message or "child" in message:
            self._on_event(message, fds)
        if future is not None and not future.done():
            future.set_result(message)

    def _write(self) -> None:
        while self._queue:
            data, fds = self._queue[0]
            try:
                count = self._sock.sendmsg([data], frame.rights(fds), socket.MSG_NOSIGNAL)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as problem:
                self.close(str(problem))
                return
            for fd in fds:
                os.close(fd)
            if count < len(data):
                self._queue[0] = (data[count:], [])
            else:
                self._queue.pop(0)
        if bool(self._queue) != self._writing:
            self._writing = bool(self._queue)
            if self._writing:
                self._loop.add_writer(self._sock.fileno(), self._write)
            else:
                self._loop.remove_writer(self._sock.fileno())
