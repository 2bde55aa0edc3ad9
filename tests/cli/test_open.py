"""`wsh open`: a browser comes to the page signed in, and nobody else on the machine sees the link."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.serving import RunningServer, running_server
from wsh.wire.system.place import Places

WSH = [sys.executable, "-m", "wsh.cli.main"]
BROWSER = """#!/bin/sh
echo "$@" > "$(dirname "$0")/arguments"
cp -p "${1#file://}" "$(dirname "$0")/given.html"
"""


@pytest.fixture
def server(places: Places) -> Iterator[RunningServer]:
    with running_server(places) as server:
        yield server


def test_the_link_reaches_the_browser_in_a_private_file(
    server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run([*WSH, "open"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"opened {server.url}\n"
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("file://") and "code" not in arguments
    assert (tmp_path / "given.html").stat().st_mode & 0o777 == 0o600
    Path(arguments.strip().removeprefix("file://")).unlink()
    url = (tmp_path / "given.html").read_text().partition("url=")[2].partition('"')[0]
    assert url.startswith(f"{server.url}/auth/open?code=")
    # As a browser asks that comes from a file: the answer is a page that goes on by itself, with the cookie.
    with urllib.request.urlopen(
        urllib.request.Request(url, headers={"Sec-Fetch-Site": "cross-site"}), timeout=60
    ) as answer:
        body, cookie = answer.read().decode(), answer.headers["set-cookie"]
    assert answer.status == 200 and "SameSite=Strict" in cookie
    target = body.partition("url=")[2].partition('"')[0]
    assert target.startswith("/ui/#key=") and urlsplit(target).path == "/ui/"


def test_without_a_browser_the_link_is_printed(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    done = subprocess.run([*WSH, "open"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "no browser" in done.stderr and f"{server.url}/auth/open?code=" in done.stdout


def test_a_session_that_is_not_there_is_answered_with_one_that_sounds_like_it(server: RunningServer) -> None:
    subprocess.run([*WSH, "new", "--name", "work", "sh"], check=True, timeout=60, capture_output=True)
    done = subprocess.run([*WSH, "screen", "wrok"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "Did you mean work?" in done.stderr and "`wsh list`" in done.stderr
    other = subprocess.run([*WSH, "screen", "elsewhere"], capture_output=True, text=True, timeout=60)
    assert "Did you mean" not in other.stderr
