"""Connections below the routes: pings, half-open clients, writers that stall, and a bounded end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from tests.support.waiting import HANG_S, until
from wsh.http.server.serve import ConnectionLimits, Listener, Presence
from wsh.http.ws.sender import BINARY, make_frame

UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDAwMDAwMDAwMDAwMDAwMA==\r\n\r\n"
)


UNREAD_BYTES = 16 << 20
"""More than the kernel keeps for a client that does not read."""


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        if scope["path"] == "/unread":
            line = scope["state"]["line"]
            line.write_frames(make_frame(bytes(UNREAD_BYTES), BINARY))
        while (await receive())["type"] != "websocket.disconnect":
            pass
    elif scope["path"] == "/flood":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(2000):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    elif scope["path"] == "/hang":
        await asyncio.sleep(3600)
    else:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def listening(limits: ConnectionLimits) -> AsyncIterator[tuple[int, Presence, Listener]]:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen()
    sock.setblocking(False)
    presence = Presence()
    listener = Listener(app, "tcp", limits, presence)
    await listener.start([sock])
    try:
        yield sock.getsockname()[1], presence, listener
    finally:
        await listener.aclose(0.1)
        sock.close()


async def read_until_closed(reader: asyncio.StreamReader, timeout: float = HANG_S) -> bytes:
    async with asyncio.timeout(timeout):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def test_a_client_that_misses_two_pings_is_closed_and_one_that_answers_is_not() -> None:
    async with listening(ConnectionLimits(ping_s=0.2)) as (port, presence, _):
        deaf, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(UPGRADE)
        alive, answering = await asyncio.open_connection("127.0.0.1", port)
        answering.write(UPGRADE)
        await alive.readuntil(b"\r\n\r\n")

        async def pong() -> int:
            count = 0
            while count < 5:
                head = await alive.readexactly(2)
                assert head[0] == 0x89
                payload = await alive.readexactly(head[1])
                answering.write(bytes((0x8A, 0x80 | len(payload), 0, 0, 0, 0)) + payload)
                count += 1
            return count

        answered = asyncio.ensure_future(pong())
        received = await read_until_closed(deaf)
        frames = received.partition(b"\r\n\r\n")[2]
        assert frames.count(b"\x89\x04") == 2, "two pings, then the end"
        assert b"\x88" in frames and (1011).to_bytes(2, "big") in frames
        assert await asyncio.wait_for(answered, 60) == 5
        assert presence.count == 1
        writer.close()
        answering.close()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_websocket_whose_client_reads_nothing_ends(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def work() -> None:
        async with listening(ConnectionLimits(ping_s=0.2)) as (port, presence, listener):
            with socket.create_connection(("127.0.0.1", port)) as deaf:
                deaf.sendall(UPGRADE.replace(b"GET /", b"GET /unread"))
                await until(lambda: listener._state.tasks, "the application to begin")
                (task,) = listener._state.tasks
                await until(task.done, "the application to hear of the end")
                await until(lambda: presence.count == 0, "0 connections")

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work())


async def test_a_reader_that_stalls_is_cut_off() -> None:
    async with listening(ConnectionLimits(stalled_write_s=0.3)) as (port, presence, _):
        with socket.create_connection(("127.0.0.1", port)) as sock:
            sock.sendall(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
            await until(lambda: presence.count == 1, "1 connections")
            await until(lambda: presence.count == 0, "0 connections")


async def test_presence_counts_each_client_once_also_across_an_upgrade() -> None:
    async with listening(ConnectionLimits()) as (port, presence, _):
        seen: list[int] = []
        presence.changed = lambda: seen.append(presence.count)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(UPGRADE)
        await reader.readuntil(b"\r\n\r\n")
        assert presence.count == 1
        writer.close()
        await until(lambda: presence.count == 0, "0 connections")
        assert seen == [1, 0]


async def test_the_end_is_bounded_whatever_clients_do() -> None:
    async with listening(ConnectionLimits()) as (port, presence, listener):
        writers = []
        for request in (
            b"GET /hang HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /fl",
            UPGRADE,
            b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n",
        ):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            writers.append(writer)
        await asyncio.sleep(0.1)
        async with asyncio.timeout(HANG_S):
            await listener.aclose(0.3)
        await until(lambda: presence.count == 0, "0 connections")
        for writer in writers:
            writer.close()


async def test_a_handshake_that_is_none_is_refused_in_the_shape_of_all_errors() -> None:
    async with listening(ConnectionLimits()) as (port, *_):
        for broken in (
            UPGRADE.replace(b"Sec-WebSocket-Key: MDAwMDAwMDAwMDAwMDAwMA==\r\n", b""),
            UPGRADE.replace(b"MDAwMDAwMDAwMDAwMDAwMA==", b"%%%"),
            UPGRADE.replace(b"Version: 13", b"Version: 7"),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(broken)
            head, _, body = (await asyncio.wait_for(reader.read(), 60)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400 ") and b"application/json" in head
            assert json.loads(body)["error"]["code"] == "invalid_request"
            writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(UPGRADE)
        assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 101")
        writer.close()


async def test_a_client_that_was_accepted_in_the_last_moment_gets_an_end_too() -> None:
    for turns in range(8):
        async with listening(ConnectionLimits()) as (port, presence, listener):
            with socket.create_connection(("127.0.0.1", port), HANG_S) as client:
                for _ in range(turns):
                    await asyncio.sleep(0)
                await listener.aclose(0)
                try:
                    assert client.recv(1) == b"", turns
                except ConnectionResetError:  # it was not accepted
                    pass
                assert presence.count == 0
