"""The connection to NATS where something else listens there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.waiting import until
from wsh.host.fleet import connection as module
from wsh.host.fleet.connection import ConnectionLost, open_connection
from wsh.host.fleet.deploy import set_up

INFO = b'INFO {"server_id":"x","version":"2.9.0","max_payload":1048576,"tls_required":true,"nonce":"abc"}\r\n'


@pytest.mark.parametrize("says", [b"", INFO, b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["nothing", "no TLS", "other"])
async def test_an_attempt_to_connect_leaves_no_socket_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: bytes
) -> None:
    monkeypatch.setattr(module, "_CONNECT_S", 0.1)
    closed = 0

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal closed
        writer.write(says)
        while await reader.read(1 << 16):
            pass
        closed += 1
        writer.close()

    credential = set_up(tmp_path / "nats", "test", "127.0.0.1", 0).invite("ann", "owner")
    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(ConnectionLost):
            async with open_connection(credential, url, 1 << 20):
                pass
        await until(lambda: closed)
