"""`wsh send`: what is piped into it is typed, whatever its size."""

from __future__ import annotations

import hashlib
import os
import sys

from websockets.sync.client import connect

from tests.support.serving import running_server
from tests.support.waiting import wait_until
from tests.support.warm import run_warm
from wsh.wire.system.place import Places


def test_bytes_piped_into_send_arrive_whole_even_when_one_body_cannot_hold_them(places: Places) -> None:
    data = os.urandom(2_500_000)
    with running_server(places) as server:
        command = f"stty raw -echo; echo ready; head -c {len(data)} | sha256sum; exec sleep 60"
        assert server.request("POST", "/sessions", {"name": "big", "command": command, "cols": 120}).status == 201

        def shows(text: str) -> bool:
            return any(text in line for line in server.get("/sessions/big/screen?format=plain")["lines"])

        wait_until(lambda: shows("ready"), "the program reads")
        done = run_warm([sys.executable, "-P", "-m", "wsh.cli.main", "send", "big"], input=data)
        assert (done.returncode, done.stderr) == (0, b"")
        wait_until(lambda: shows(hashlib.sha256(data).hexdigest()), "all of it arrives as it was")


def test_wrong_words_are_told_in_words_of_the_command_line(places: Places) -> None:
    def wsh(*words: str) -> tuple[int, str]:
        command = [sys.executable, "-P", "-m", "wsh.cli.main", *words]
        done = run_warm(command, text=True)
        return done.returncode, done.stderr

    with running_server(places) as server:
        assert server.request("POST", "/sessions", {"name": "work", "command": "bash --norc"}).status == 201
        for words in (["screen", ""], ["kill", ""]):
            status, said = wsh(*words)
            assert status == 2 and "SESSION is empty." in said
        for words, wrong in (
            (["wait", "work", "--max-wait-ms", "-5"], "wsh: max-wait-ms must be at least 0."),
            (["resize", "work", "0", "5000"], "wsh: rows must be at least 1; cols must be at most 1000."),
        ):
            status, said = wsh(*words)
            assert status == 2 and wrong in said and f"`wsh {words[0]} --help`" in said and "GET" not in said
        server.request("POST", "/sessions/work/run", {"input": "true"})
        url = f"{server.ws_url}/sessions/work/ws/view?rows=24&cols=80"
        with connect(url, additional_headers=server.auth) as person:
            person.send(b"half a li")
            wait_until(lambda: "half a li" in str(server.get("/sessions/work/screen")), "the line")
            status, said = wsh("send", "work", "x")
            assert status == 1 and "wsh keys work ctrl+c" in said and "--clear-line" not in said
