"""The sign-in link as a QR code: what a camera reads is the link."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.serving import RunningServer, running_server
from wsh.wire.system.place import Places


@pytest.fixture
def server(places: Places) -> Iterator[RunningServer]:
    with running_server(places, check_left=False) as running:
        yield running


def _link(*words: str, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    import os

    environ = os.environ | {"PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "wsh.cli.main", "link", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environ, timeout=60)


def test_the_code_holds_the_link_and_plain_http_is_warned_of(server: RunningServer) -> None:
    import io

    import segno

    done = _link("--qr", "--at", "https://box.example.net")
    *drawn, url = done.stdout.strip("\n").split("\n")
    assert done.returncode == 0 and done.stderr == "" and url.startswith("https://box.example.net/auth/open?code=")
    expected = io.StringIO()
    segno.make(url, error="l", micro=False).terminal(out=expected, border=2, compact=True)
    assert "\n".join(drawn).strip("\n") == expected.getvalue().strip("\n")
    plain = _link("--qr", "--at", "http://192.0.2.7:8080", encoding="ascii")
    assert plain.returncode == 0 and "Plain http" in plain.stderr and "no push" in plain.stderr, plain
    assert _link("--at", "ftp://box").returncode == 2
