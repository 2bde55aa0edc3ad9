"""The terminal of `wsh attach`, lent at the wrong moment: both ends agree on who has it, and the server is not stopped by reading it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import tty
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import pytest

from tests.support.pane import WSH, make, read_until
from tests.support.serving import RunningServer
from tests.support.waiting import HANG_S, wait_until
from wsh.client.attach import lending
from wsh.client.attach.person import Person
from wsh.client.attach.prefix import Bindings
from wsh.client.ws_client import WsClient, open_ws_client
from wsh.http.ws.sender import make_frame
from wsh.wire.system.place import Places, find_places


def hear(line: WsClient, last: str) -> list[str]:
    """The types of the text messages that come, up to `last`."""
    heard: list[str] = []
    while True:
        heard += [json.loads(each.payload)["type"] for each in line.receive() if each.kind == "text"]
        if last in heard:
            return heard
        assert select.select([line], [], [], HANG_S)[0], heard


def wait_for(fd: int, text: bytes) -> bytes:
    return read_until(fd, lambda seen: text in seen, b"")


def lend_again(name: str) -> NoReturn:
    """A viewer that asks for its terminal while the server gives it back, and lends it again; prints what it heard then."""
    tty.setraw(0)
    line = open_ws_client(find_places().socket, f"/sessions/{name}/ws/view?prefix={quote('Ctrl+]')}")
    hear(line, "lendable")
    device = os.fstat(0).st_rdev
    line.send_json({"type": "lend", "device": device})
    hear(line, "lent")
    os.write(1, b"<lent>")
    hear(line, "returned")
    line.send_json({"type": "take_back"})
    line.send_json({"type": "lend", "device": device})
    heard = hear(line, "lent")
    line.close()
    os.write(1, f"<{' '.join(heard)}>".encode())
    os._exit(0)


def test_a_terminal_that_is_asked_for_while_it_comes_back_is_returned_once(server: RunningServer) -> None:
    make(server, "crossing", "exec cat")
    pid, fd = pty.fork()
    if pid == 0:
        try:
            lend_again("crossing")
        finally:
            os._exit(1)
    try:
        wait_for(fd, b"<lent>")
        os.write(fd, b"\x1b")
        assert b"<lent>" in wait_for(fd, b"lent>"), "a second answer would be taken for that of the second lend"
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


class Typed:
    """Instead of the way to the server: what was typed."""

    def __init__(self) -> None:
        self.keys = b""

    def send_bytes(self, data: bytes) -> None:
        self.keys += data

    def send_json(self, message: dict[str, object]) -> None:
        """Not of interest."""


def test_keys_that_come_back_while_the_viewer_goes_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "_find_device", lambda: 1)
    near, far = socket.socketpair()
    line, person, typed = WsClient(near), Person("work", Bindings()), Typed()
    try:
        person.connect(typed)
        lent = lending.Lending(line, person)
        lent.hear({"type": "lendable"})
        far.send(make_frame(json.dumps({"type": "returned", "keys": "\x1b[15~"}).encode()))
        lent.end()
        assert typed.keys == b"\x1b[15~"
    finally:
        line.close()
        far.close()


def test_a_server_in_the_background_of_the_terminal_is_not_stopped_by_a_viewer_there(
    places: Places, tmp_path: Path
) -> None:
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    try:
        os.write(fd, f"{WSH} server --bind 127.0.0.1:0 >{tmp_path}/log 2>&1 &\n".encode())
        wait_until(places.runtime_info.exists, "the server")
        os.write(fd, f"clear; {WSH} new --name mine 'printf ready; exec cat'; {WSH} attach mine\n".encode())
        wait_for(fd, b"twice to detach")
        for word in (b"one", b"two"):
            os.write(fd, word)
            wait_for(fd, word)
        os.write(fd, b"\x1cd")
        wait_for(fd, b"[detached")
    finally:
        if places.runtime_info.exists():
            os.kill(json.loads(places.runtime_info.read_text())["pid"], signal.SIGCONT)
        subprocess.run([*WSH.split(), "stop"], check=True, capture_output=True)
        os.close(fd)
        os.waitpid(pid, 0)
