"""Calls under way when the connection is made again."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, unix_serve

from tests.support.waiting import HANG_S, until
from wsh.host.carrier import PROTOCOL, ForwardedAnswer, ForwardedCall, ForwardedCaller
from wsh.host.link import HostLink
from wsh.host.ssh import carrier as ssh_carrier
from wsh.host.ssh.carrier import SshCarrier, SshTiming
from wsh.host.ssh.master import SshTarget

_NEWS = json.dumps({"news": {"event": "told", "text": "x" * 65_000}})


class _SocketMaster:
    """In place of ssh: the far server's socket is one of this machine."""

    relays = False
    is_alive = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self.closed = False

    async def open(self, timeout_s: float, silent_s: float) -> None:
        pass

    async def dial(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(self._path))
        sock.setblocking(False)
        return sock

    async def aclose(self) -> None:
        self.closed = True


async def _take_call(link: ServerConnection) -> ForwardedCall:
    pieces: list[str] = []
    while True:
        said = json.loads(await link.recv())
        if "part" in said:
            pieces.append(said["part"])
        elif "end" in said or "call" in said:
            whole = said if "call" in said else json.loads("".join([*pieces, said["end"]]))
            return ForwardedCall.from_wire(whole["call"])


async def test_a_long_call_goes_out_again_while_the_host_has_more_to_say_than_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    came: list[str] = []

    async def serve(link: ServerConnection) -> None:
        welcome = {"version": "1", "protocol": PROTOCOL, "hostname": "far", "server_id": "s1"}
        await link.send(json.dumps({"welcome": welcome}))
        for _ in range(200 if came else 0):  # as it does, it takes nothing while what it says is not taken
            await link.send(_NEWS)
        call = await _take_call(link)
        came.append(call.id)
        if len(came) == 1:
            link.transport.abort()
        else:
            await link.send(json.dumps({"id": call.id, "answer": ForwardedAnswer(result=len(came)).to_wire()}))
            await link.wait_closed()

    monkeypatch.setattr(ssh_carrier, "SshMaster", lambda target, folder, name: _SocketMaster(path))
    async with unix_serve(serve, str(path), ping_interval=None, max_size=None):
        carrier = SshCarrier(SshTarget("far", "far"), tmp_path, "here", SshTiming(silent_s=4 * HANG_S))
        try:
            caller = ForwardedCaller("owner", "owner", "here")
            call = ForwardedCall("call-0001", "send_input", {"data": "x" * 8_000_000}, "job", caller, HANG_S)
            answer = await carrier.call(call)
        finally:
            await carrier.aclose()
    assert answer.unwrap() == 2 and came == [call.id, call.id]


async def test_no_ssh_is_left_behind_where_the_host_says_no_goodbye(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    masters: list[_SocketMaster] = []

    def make(target: SshTarget, folder: Path, name: str) -> _SocketMaster:
        masters.append(_SocketMaster(path))
        return masters[-1]

    async def serve(link: ServerConnection) -> None:
        await link.send(json.dumps({"welcome": {"version": "1", "protocol": PROTOCOL, "server_id": "s1"}}))
        await link.wait_closed()

    async def say_goodbye(link: HostLink) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(ssh_carrier, "SshMaster", make)
    monkeypatch.setattr(HostLink, "aclose", say_goodbye)
    async with unix_serve(serve, str(path), ping_interval=None, close_timeout=1.0):
        carrier = SshCarrier(SshTarget("far", "far"), tmp_path, "here", SshTiming(silent_s=4 * HANG_S))
        await until(lambda: carrier.state.online, "the connection")
        await carrier.aclose()
    assert [master.closed for master in masters] == [True]
