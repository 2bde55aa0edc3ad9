"""Keys that people really press while an agent has captured them: they come back by name and byte, and go nowhere else."""

from __future__ import annotations

import base64
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.support.mcp.host import HttpHost, StdioHost, structured
from tests.support.mcp.live import KINDS, live_server, open_host
from tests.support.serving import RunningServer
from tests.support.waiting import HANG_S, wait_until

Host = HttpHost | StdioHost

PRESSED = [
    (b"a", "a"),
    (b"\r", "enter"),
    (b"\x1b[A", "up"),
    (b"\x03", "ctrl+c"),
    (b"\t", "tab"),
    (b"\x1bx", "alt+x"),
    (b"\x7f", "backspace"),
    ("é".encode(), "é"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with live_server(tmp_path_factory.mktemp("capture")) as running:
        yield running


@pytest.fixture(scope="module", params=KINDS)
def host(request: pytest.FixtureRequest, server: RunningServer) -> Iterator[Host]:
    with open_host(server, request.param) as opened:
        yield opened


@pytest.fixture
def session(host: Host) -> Iterator[str]:
    """A program that shows every byte it is given."""
    show = "import os,sys,tty; tty.setraw(0); print('ready', flush=True)\nwhile b := os.read(0, 99): os.write(1, b'<%s>' % b.hex().encode())"
    name: str = _call(host, "wsh_create_session", command=f'{sys.executable} -c "{show}"')["session"]
    wait_until(lambda: "ready" in _screen(host, name), what="the program's first line")
    yield name
    _call(host, "wsh_manage_session", session=name, action="kill")


def _call(host: Host, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return structured(host.call(tool, arguments))


def _screen(host: Host, session: str) -> str:
    return "".join(_call(host, "wsh_get_screen", session=session, format="plain")["lines"])


def _collect(host: Host, session: str, count: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while len(events) < count:
        shown = _call(host, "wsh_input_mode", session=session, wait_ms=20_000)
        assert shown["events"] and shown["captured_by_you"], (events, shown)
        events += shown["events"]
    return events


@pytest.mark.parametrize("door", ["ws/view", "ws/raw"])
def test_keys_of_a_viewer_come_back_by_name_and_byte_and_reach_no_program(
    server: RunningServer, host: Host, session: str, door: str
) -> None:
    overlay = _call(host, "wsh_overlay", session=session, x=0, y=5, width=9, height=1, spans=[{"text": "ask"}])["id"]
    with connect(f"{server.ws_url}/sessions/{session}/{door}", additional_headers=server.auth) as viewer:
        shown = _call(host, "wsh_input_mode", session=session, mode="capture", focus=overlay)
        assert (shown["mode"], shown["focused_element"], shown["events"]) == ("capture", overlay, [])
        for raw, _ in PRESSED:
            viewer.send(raw)
        events = _collect(host, session, len(PRESSED))
        assert [(base64.b64decode(e["raw"]), e["key"]) for e in events] == PRESSED
        assert {e["target"] for e in events} == {overlay}
        assert [e["seq"] for e in events] == sorted({e["seq"] for e in events})
        assert "<" not in _screen(host, session), "a captured key reached the program"
        _call(host, "wsh_send_input", session=session, input="Z")
        wait_until(lambda: "<5a>" in _screen(host, session), what="an agent's own input, which always passes")
        assert _call(host, "wsh_input_mode", session=session, mode="release")["mode"] == "passthrough"
        viewer.send(b"q")
        wait_until(lambda: "<5a><71>" in _screen(host, session), what="a key after the release")
    assert _call(host, "wsh_input_mode", session=session)["events"] == []


def test_a_call_that_waits_ends_with_the_key(server: RunningServer, host: Host, session: str) -> None:
    with connect(f"{server.ws_url}/sessions/{session}/ws/view", additional_headers=server.auth) as viewer:
        _call(host, "wsh_input_mode", session=session, mode="capture")
        pressing = threading.Timer(0.3, lambda: viewer.send(b"\x1b[B"))
        pressing.start()
        shown = _call(host, "wsh_input_mode", session=session, wait_ms=30_000)
        pressing.join()
        assert [e["key"] for e in shown["events"]] == ["down"]
        assert _call(host, "wsh_input_mode", session=session, wait_ms=50)["events"] == []
        _call(host, "wsh_input_mode", session=session, mode="release")


def test_a_person_who_attached_types_into_the_capture_and_takes_the_keys_back(
    server: RunningServer, host: Host, session: str
) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "wsh.cli.main", "attach", session]
    person = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    seen = bytearray()

    def watch() -> None:
        try:
            while data := os.read(master, 65536):
                seen.extend(data)
        except OSError:
            pass

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        wait_until(lambda: b"ready" in seen, what="the session in the person's terminal")
        _call(host, "wsh_input_mode", session=session, mode="capture")
        os.write(master, b"yes")
        keys = "".join(e["key"] for e in _collect(host, session, 3))
        assert keys == "yes" and "<" not in _screen(host, session)
        os.write(master, b"\x1c")
        shown = _call(host, "wsh_input_mode", session=session, wait_ms=20_000)
        assert shown["mode"] == "passthrough" and not shown["captured_by_you"]
        wait_until(lambda: (os.write(master, b"n"), "6e" in _screen(host, session))[1], what="a key after Ctrl+\\")
    finally:
        person.terminate()
        person.wait(HANG_S)
        watching.join(HANG_S)
        os.close(master)
