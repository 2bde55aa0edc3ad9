"""`wsh send`: what is piped into it is typed, whatever its size."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

from tests.support.serving import running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places


def test_bytes_piped_into_send_arrive_whole_even_when_one_body_cannot_hold_them(places: Places) -> None:
    data = os.urandom(2_500_000)
    with running_server(places) as server:
        command = f"stty raw -echo; echo ready; head -c {len(data)} | sha256sum; exec sleep 60"
        assert server.request("POST", "/sessions", {"name": "big", "command": command, "cols": 120}).status == 201

        def shows(text: str) -> bool:
            return any(text in line for line in server.get("/sessions/big/screen?format=plain")["lines"])

        wait_until(lambda: shows("ready"), "the program reads")
        done = subprocess.run(
            [sys.executable, "-P", "-m", "wsh.cli.main", "send", "big"], input=data, capture_output=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, b"")
        wait_until(lambda: shows(hashlib.sha256(data).hexdigest()), "all of it arrives as it was")
