"""The terminal of `wsh attach` is lent to the server: keys and pictures pass the viewer by, and it is the viewer's again whenever it must be."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.pane import WSH, make, read_until
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until, wait_while
from wsh.client.ws_client import WsClient, open_ws_client
from wsh.http.ws.lent_terminal import plain_keys
from wsh.wire.system.place import Places, find_places


@pytest.fixture
def mortal(places: Places) -> Iterator[RunningServer]:
    """A server of its own, for a test that ends it."""
    with running_server(places) as running:
        yield running


class Attached:
    """`wsh attach` in a terminal whose other end is `fd`."""

    def __init__(self, name: str) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.execvp(sys.executable, [*WSH.split(), "attach", name])
        self._keys = 0

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def wait(self, text: bytes) -> bytes:
        return read_until(self.fd, lambda seen: text in seen, b"")

    def is_quiet(self) -> bool:
        return not select.select([self.fd], [], [], 0)[0]

    def _count_transferred(self) -> list[str]:
        return [line for line in Path(f"/proc/{self.pid}/io").read_text().splitlines() if "char" in line]

    def wait_until_lent(self) -> None:
        """Type numbers until one passes the viewer by."""

        def is_lent() -> bool:
            before = self._count_transferred()
            self._keys += 1
            self.type(b"\x15%d" % self._keys)
            self.wait(b"%d" % self._keys)
            return self._count_transferred() == before

        wait_until(is_lent, "a key that the viewer need not read")
        self.type(b"\x15")


@contextmanager
def attached(server: RunningServer, name: str, command: str = "exec cat") -> Iterator[Attached]:
    make(server, name, f"printf ready; {command}", rows=23, cols=80)
    seen = Attached(name)
    try:
        seen.wait(b"ready")
        yield seen
    finally:
        os.close(seen.fd)
        os.waitpid(seen.pid, 0)


def read_screen(server: RunningServer, name: str) -> str:
    return "\n".join(server.get(f"/sessions/{name}/screen?format=plain")["lines"])


def type_beside(server: RunningServer, name: str, keys: bytes) -> None:
    """As a program, which may type once the person's line is empty."""
    wait_until(lambda: server.request("POST", f"/sessions/{name}/input", keys).status < 300, "an empty line")


def test_keys_and_pictures_pass_the_viewer_by_until_the_prefix(server: RunningServer) -> None:
    with attached(server, "direct") as seen:
        seen.wait_until_lent()
        seen.type(b"\x1c")
        seen.wait(b"detach")
        seen.type(b"z")
        seen.wait(b"no such key: z")
        seen.wait_until_lent()
        seen.type(b"\x1b[I")  # neither text nor an arrow: the viewer looks at it
        seen.wait(b"^[[I")
        seen.wait_until_lent()
        seen.type(b"\x1cd")
        shown = seen.wait(b"[detached")
        assert b"\x1b[?2026h" not in shown[shown.rindex(b"[?1049l") :], "nothing is drawn over the shell"


def test_what_is_printed_after_the_viewer_was_killed_is_not_drawn(server: RunningServer) -> None:
    with attached(server, "killed") as seen:
        seen.wait_until_lent()
        type_beside(server, "killed", b"calm\r")
        seen.wait(b"calm")
        held = os.open(f"/proc/{seen.pid}/fd/0", os.O_RDWR | os.O_NOCTTY)  # as the shell that started it
        try:
            os.kill(seen.pid, signal.SIGKILL)
            os.waitid(os.P_PID, seen.pid, os.WEXITED | os.WNOWAIT)
            while not seen.is_quiet():
                os.read(seen.fd, 65536)
            type_beside(server, "killed", b"ghost\r")
            wait_until(lambda: "ghost" in read_screen(server, "killed"), "the output")
            wait_until(lambda: not server.get("/clients")["clients"], "a server that knows")
            assert seen.is_quiet()
            seen.type(b"k")
            wait_until(lambda: os.read(held, 1) == b"k", "the key of whoever has the terminal now")
        finally:
            os.close(held)


def test_a_stopped_viewer_has_its_terminal_back(server: RunningServer) -> None:
    with attached(server, "stopped") as seen:
        seen.wait_until_lent()
        type_beside(server, "stopped", b"calm\r")
        seen.wait(b"calm")
        os.kill(seen.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, seen.pid, os.WSTOPPED | os.WNOWAIT)
        while not seen.is_quiet():
            os.read(seen.fd, 65536)
        try:
            type_beside(server, "stopped", b"unseen\r")
            wait_until(lambda: "unseen" in read_screen(server, "stopped"), "the output")
            seen.type(b"later")
            wait_while(seen.is_quiet, "a terminal that nobody writes to", 0.2)
            assert "later" not in read_screen(server, "stopped"), "the server has read the key"
        finally:
            os.kill(seen.pid, signal.SIGCONT)
        seen.wait(b"later")
        wait_until(lambda: "later" in read_screen(server, "stopped"), "the echo on the screen, too")
        assert read_screen(server, "stopped").count("later") == 1
        seen.wait_until_lent()


def test_keys_typed_while_the_server_is_dead_reach_the_next_one_once(mortal: RunningServer) -> None:
    with attached(mortal, "orphan") as seen:
        seen.wait_until_lent()
        mortal.process.kill()
        mortal.process.wait()
        seen.type(b"\x15between")
        shown = seen.wait(b"between")
        assert b"waiting for it" in shown
        seen.wait_until_lent()
        seen.type(b"\x15after\r")
        seen.wait(b"after")
        seen.type(b"\x1cd")
        seen.wait(b"[detached")


def test_a_terminal_that_takes_nothing_holds_nobody_up_and_gets_the_newest_picture(server: RunningServer) -> None:
    with attached(server, "full", "read -r go; seq 300000; printf 'the end'; exec cat") as seen:
        seen.wait_until_lent()
        seen.type(b"\r")
        wait_until(lambda: "the end" in read_screen(server, "full"), "a program that runs on")
        seen.wait(b"the end")
        seen.type(b"\x1cd")
        seen.wait(b"[detached")


def test_a_server_that_hangs_does_not_keep_the_terminal(server: RunningServer) -> None:
    with attached(server, "hangs") as seen:
        seen.wait_until_lent()
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            seen.type(b"\x1c\x1c")
            seen.wait(b"[detached")
        finally:
            os.kill(server.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_drawn_once_a_viewer_that_was_told_to_end_gave_the_terminal_back(
    server: RunningServer, sig: signal.Signals
) -> None:
    with attached(server, "told", "read -r go; while :; do seq 100; done") as seen:
        seen.wait_until_lent()
        seen.type(b"\r")
        seen.wait(b"100")
        os.kill(seen.pid, sig)
        shown = seen.wait(b"[detached")
        assert b"\x1b[?2026h" not in shown[shown.rindex(b"[?1049l") :]


def open_view(server: RunningServer, name: str, query: str = "") -> WsClient:
    return open_ws_client(find_places().socket, f"/sessions/{name}/ws/view?rows=24&cols=80&{query}")


def hear(line: WsClient, kind: str, wanted: str) -> dict[str, object]:
    """The next text message of that type, or None where a picture has the text."""

    def receive() -> dict[str, object] | None:
        for each in line.receive():
            if kind == "picture" and each.kind == "bytes" and wanted.encode() in each.payload:
                return {"type": "picture"}
            if each.kind == "text" and json.loads(each.payload)["type"] == wanted:
                found: dict[str, object] = json.loads(each.payload)
                return found
        return None

    found = wait_until(receive, wanted)
    assert found is not None
    return found


def test_a_viewer_that_does_not_lend_goes_on_as_before(server: RunningServer) -> None:
    make(server, "older", "printf ready; exec cat", rows=23, cols=80)
    line = open_view(server, "older", f"prefix={quote('Ctrl+]')}")
    try:
        hear(line, "text", "lendable")
        line.send_bytes(b"typed")
        hear(line, "picture", "typed")
    finally:
        line.close()


def test_only_the_viewers_own_terminal_in_the_foreground_is_borrowed(server: RunningServer) -> None:
    make(server, "strange", "exec cat", rows=23, cols=80)
    near, far = pty.openpty()  # nobody's controlling terminal, and not on the standard input of this process
    line = open_view(server, "strange", f"prefix={quote('Ctrl+]')}")
    try:
        hear(line, "text", "lendable")
        for device in (os.fstat(far).st_rdev, os.stat("/dev/null").st_rdev, 0):
            line.send_json({"type": "lend", "device": device})
            assert hear(line, "text", "returned")["refused"]
        line.send_json({"type": "take_back"})
        line.send_bytes(b"typed")
        hear(line, "picture", "typed")
        assert not select.select([near], [], [], 0)[0]
    finally:
        line.close()
        os.close(near)
        os.close(far)


@pytest.mark.parametrize("query", ["", "prefix=Ctrl%2B%5D&read_only=true"], ids=["no prefix", "read only"])
def test_a_viewer_without_keys_of_its_own_is_not_asked_for_its_terminal(server: RunningServer, query: str) -> None:
    make(server, "unasked", "exec cat", rows=23, cols=80)
    line = open_view(server, "unasked", query)
    try:
        line.send_json({"type": "lend", "device": 1})
        assert hear(line, "text", "returned")["refused"]
    finally:
        line.close()


def test_what_is_plainly_typed() -> None:
    plain = plain_keys("Ctrl+]")
    assert plain is not None
    for keys in (b"a", b"\r", b"\x03", "ü漢".encode(), b"\x1b[A", b"\x1bOB", b"ls\x1b[Dx", b"\x1c"):
        assert plain.fullmatch(keys), keys
    for keys in (
        b"\x1d",
        b"a\x1d",
        b"\x1b",
        b"\x1bx",
        b"\x1b[93;5u",
        b"\x1b[200~a",
        b"\x1b[<0;1;1M",
        b"\x1b[",
        b"\x1b[I",
    ):
        assert not plain.fullmatch(keys), keys
    backslash = plain_keys("Ctrl+\\")
    assert backslash is not None and backslash.fullmatch(b"\\\x1d") and not backslash.fullmatch(b"\x1c")
    assert plain_keys("F1") is None
