"""A session shown in this terminal: its pictures come in, keys go out, until detached.

Talks to `/sessions/{name}/ws/view`: binary messages are bytes for the emulator one way and typed bytes the other; text messages are JSON
about sizes, modes and the end. If the server dies, another is started (or found) and the session goes on where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from wsh.client import tty
from wsh.client.launch import ensure_server
from wsh.wire.error import ServerGone, WshError, from_wire
from wsh.wire.place import find_places

_RECONNECT_S = 10.0


@dataclass(frozen=True)
class ViewOptions:
    read_only: bool = False
    status: bool = True
    scrollback_lines: int = 0


@dataclass
class ViewEnd:
    """How the viewing ended: `reason` in words, and the program's exit status if it ended."""

    reason: str
    exit_code: int | None = None


class _Ended(Exception):
    def __init__(self, end: ViewEnd) -> None:
        self.end = end


async def view(name: str, options: ViewOptions) -> ViewEnd:
    """Show session `name` here until it is detached, killed or over. The terminal must be in raw mode already."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    first = options
    while True:
        try:
            await _view_once(name, first, stop)
            return ViewEnd("ended")
        except _Ended as ended:
            return ended.end
        except (ConnectionClosed, OSError, ServerGone):
            if stop.is_set():
                return ViewEnd("stopped")
            await asyncio.sleep(0.05)
            await ensure_server(timeout_s=_RECONNECT_S)
            first = ViewOptions(
                options.read_only, options.status
            )  # what was printed before is on this terminal already


async def _view_once(name: str, options: ViewOptions, stop: asyncio.Event) -> None:
    async with _connect(name, options) as socket:
        tasks = [
            asyncio.ensure_future(_show(socket)),
            asyncio.ensure_future(_type(socket)),
            asyncio.ensure_future(_follow_size(socket)),
            asyncio.ensure_future(stop.wait()),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[3] in done:
                raise _Ended(ViewEnd("stopped"))
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def _connect(name: str, options: ViewOptions) -> AsyncIterator[ClientConnection]:
    rows, cols = tty.size()
    asked: dict[str, Any] = {"rows": rows, "cols": cols}
    if options.read_only:
        asked["read_only"] = "true"
    if options.status:
        asked["status"] = "true"
    if options.scrollback_lines:
        asked["scrollback"] = options.scrollback_lines
    path = f"/sessions/{quote(name, safe='')}/ws/view?{urlencode(asked)}"
    try:
        socket = await unix_connect(
            str(find_places().socket), f"ws://localhost{path}", max_size=None, compression=None, ping_interval=None
        )
    except InvalidStatus as refused:
        raise _error_of(refused) from None
    except (OSError, WebSocketException) as problem:
        raise ServerGone(str(problem)) from None
    try:
        yield socket
    finally:
        await socket.close()


def _error_of(refused: InvalidStatus) -> WshError:
    try:
        return from_wire(json.loads(refused.response.body or b"{}")["error"])
    except (ValueError, KeyError, TypeError):
        return ServerGone(f"it answered with status {refused.response.status_code}")


async def _show(socket: ClientConnection) -> None:
    exit_code: int | None = None
    try:
        async for message in socket:
            if isinstance(message, bytes):
                tty.write_all(1, message)
                continue
            said = json.loads(message)
            if said.get("type") == "exit":
                exit_code = said["exit_code"]
                raise _Ended(ViewEnd("exited", exit_code))
            if said.get("type") == "dismissed":
                raise _Ended(ViewEnd(str(said.get("reason", "detached"))))
    except ConnectionClosed as closed:
        if closed.rcvd is not None and closed.rcvd.code == 1000:
            raise _Ended(ViewEnd(closed.rcvd.reason or "detached", exit_code)) from None
        raise
    raise _Ended(ViewEnd("detached", exit_code))


async def _type(socket: ClientConnection) -> None:
    loop = asyncio.get_running_loop()
    typed: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        try:
            data = os.read(0, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        typed.put_nowait(data)
        if not data:
            loop.remove_reader(0)

    loop.add_reader(0, read)
    try:
        while data := await typed.get():
            await socket.send(data)
        raise _Ended(ViewEnd("the terminal is gone"))
    finally:
        loop.remove_reader(0)


async def _follow_size(socket: ClientConnection) -> None:
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        while True:
            await changed.wait()
            changed.clear()
            rows, cols = tty.size()
            await socket.send(json.dumps({"type": "resize", "rows": rows, "cols": cols}))
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
