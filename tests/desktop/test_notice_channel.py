"""Notices of the server on the desktop of its machine: over a bus, by a service that takes them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.test_inbox import ASK, make
from tests.http.test_server_approval import ask
from tests.support.serving import running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[str]:
    assert shutil.which("dbus-daemon") and shutil.which("gdbus"), "Debian's dbus-daemon and libglib2.0-bin"
    words = ["dbus-daemon", "--session", "--nofork", "--print-address"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        address = daemon.stdout.readline().strip()
        environ = {**os.environ, "DBUS_SESSION_BUS_ADDRESS": address}
        module = "tests.support.desktop.notification_service"
        service = subprocess.Popen([sys.executable, "-m", module, str(tmp_path / "shown")], env=environ)
        try:
            wait_until(lambda: (tmp_path / "shown").exists(), "the service")
            yield address
        finally:
            service.terminate()
            service.wait(60)
            daemon.terminate()


def test_what_waits_is_shown_once_and_markup_of_a_program_is_text(places: Places, bus: str, tmp_path: Path) -> None:
    def shown() -> list[list[str]]:
        return [json.loads(line) for line in (tmp_path / "shown").read_text().splitlines()]

    environ = {"DBUS_SESSION_BUS_ADDRESS": bus, "WSH_NOTIFY_PRESENT_S": "0", "WSH_APPROVALS_SERVER": "true"}
    with running_server(places, environ=environ, check_left=False) as server:
        assert server.request("POST", "/notices/test", {"channel": "desktop"}).json["deliveries"][0]["state"] == "sent"
        wait_until(lambda: len(shown()) == 1, seen=shown)
        ask(server, "echo", "<b>bold</b>")
        make(server, "asker", ASK, "asks")
        wait_until(lambda: len(shown()) == 3, seen=shown)
        texts = sorted(text for _, text in shown()[1:])
        assert any("&lt;b&gt;bold" in text for text in texts) and any("go on? [y/N]" in text for text in texts), shown()

        def states() -> dict[str, list[str]]:
            return {
                one["kind"]: [each["state"] for each in one["deliveries"] if each["channel"] == "desktop"]
                for one in server.get("/notices")["notices"]
            }

        wait_until(lambda: states()["request"] == states()["asks"] == ["sent"], seen=states)
