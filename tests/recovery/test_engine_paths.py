"""What kills the terminal engine, met by everything that visits it: runs, pictures, recordings, viewers, the desktop window."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from websockets.sync.client import connect

from tests.fuzz.case import load
from tests.recovery.test_engine_death import (
    DEADLY,
    KILLER,
    dying_server,
    open_session,
    screen,
    trigger,
    type_in,
    wait_for_text,
)
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places

STORED = sorted((Path(__file__).parent.parent / "terminal" / "killers").glob("*.json"))


def _killers() -> list[tuple[str, int, int, bytes]]:
    """Those that kill by output alone: name, size, bytes."""
    found = [("links between margins", 40, 82, KILLER)]
    for path in STORED:
        case = load(path)
        if all(step.do == "feed" for step in case.steps):
            found.append((path.stem, case.rows, case.cols, b"".join(step.data for step in case.steps)))
    return found


@pytest.mark.parametrize(("rows", "cols", "data"), [k[1:] for k in _killers()], ids=[k[0] for k in _killers()])
def test_no_visit_to_a_session_that_printed_a_killer_costs_the_server(
    places: Places, tmp_path: Path, rows: int, cols: int, data: bytes
) -> None:
    file = tmp_path / "killer"
    file.write_bytes(data)
    with running_server(places) as server:
        open_session(server, "hurt", rows, cols)
        ran = server.request("POST", "/sessions/hurt/run", {"input": f"cat {shlex.quote(str(file))}; printf '\\033c'"})
        assert ran.status == 200, ran.body
        info = server.get("/sessions/hurt")
        assert "wsh left out" in (info["notice"] or ""), info
        here = "/sessions/hurt"
        for path in (
            f"{here}/screen?format=styled",
            f"{here}/scrollback?limit=200",
            f"{here}/commands/{ran.json['command_id']}/output",
            f"{here}/screenshot.svg",
            f"{here}/screenshot.png",
            *(f"{here}/recording?format={format}" for format in ("asciicast-v2", "txt", "html", "svg", "png")),
        ):
            reply = server.request("GET", path)
            assert reply.status == 200, (path, reply.body[:300])
        assert server.request("POST", f"{here}/resize", {"rows": rows, "cols": cols + 1}).status in (200, 204)
        with connect(f"{server.ws_url}{here}/ws/view?rows=24&cols=80", additional_headers=server.auth) as viewer:
            assert viewer.recv(60)
        ran = server.request("POST", f"{here}/run", {"input": "echo goes on"})
        assert ran.status == 200 and ran.json["output"].strip() == "goes on", ran.body
        assert server.process.poll() is None
        server.stop(signal.SIGKILL)
        with running_server(places, expect_alive=True) as again:
            assert "goes on" in screen(again, "hurt")
            assert again.get(f"{here}")["notice"] == info["notice"]


def test_output_that_kills_where_it_is_rendered_as_text_is_left_out_by_the_next_server(places: Places) -> None:
    with dying_server(places, environ=DEADLY) as server:
        open_session(server, "other")
        open_session(server, "hurt")
        wait_for_text(server, "hurt", "$")
        trigger(server, "/sessions/hurt/run", {"input": "printf 'NO-''RENDER'"})
    with running_server(places, environ=DEADLY, expect_alive=True) as server:
        assert "wsh left out" in server.get("/sessions/hurt")["notice"]
        for name in ("hurt", "other"):
            ran = server.request("POST", f"/sessions/{name}/run", {"input": "echo al''ive"})
            assert ran.status == 200 and ran.json["output"].strip() == "alive", ran.body


def test_an_engine_that_refuses_a_read_begins_the_screen_anew_and_says_so(places: Places) -> None:
    with running_server(places, environ=DEADLY, expect_alive=True) as server:
        open_session(server, "hurt")
        type_in(server, "hurt", "printf 'REF''USED'\r")
        wait_until(lambda: "begin its screen anew" in (_looked(server)["notice"] or ""), "the engine to be mended")
        type_in(server, "hurt", "echo a''live\r")
        wait_for_text(server, "hurt", "alive")
        assert server.get("/sessions/hurt/screen?format=styled")["lines"]
        assert server.request("GET", "/sessions/hurt/screenshot.svg").status == 200


def _looked(server: RunningServer) -> dict[str, str | None]:
    assert server.request("GET", "/sessions/hurt/screen?format=styled").status == 200
    info: dict[str, str | None] = server.get("/sessions/hurt")
    return info


def test_pictures_and_recordings_that_kill_are_answered_and_the_server_lives(places: Places) -> None:
    """The engine that drew the session survived; the one that draws its recording does not, in a child."""
    with running_server(places, environ=DEADLY, expect_alive=True) as server:
        open_session(server, "hurt")
        wait_for_text(server, "hurt", "$")
        type_in(server, "hurt", "printf 'NO-''CHILD'\r")
        wait_for_text(server, "hurt", "NO-CHILD")
        for format in ("txt", "html", "svg"):
            reply = server.request("GET", f"/sessions/hurt/recording?format={format}")
            assert reply.status != 200 and reply.code == "capability_missing", reply
        assert server.request("GET", "/sessions/hurt/recording?format=asciicast-v2").status == 200
        assert server.request("GET", "/sessions/hurt/screenshot.png").status == 200


SHOW = """
import asyncio, json, sys
from pathlib import Path
from wsh.desktop.remote import RemoteView

async def show():
    view = RemoteView(Path(sys.argv[1]), "hurt", 24, 80, lambda: None)
    while view.running:
        await asyncio.sleep(0.01)
    print(json.dumps(view.terminal.screen(False).lines))
    await view.aclose()

asyncio.run(show())
"""


def test_the_windows_engine_does_not_die_of_a_whole_picture(places: Places) -> None:
    with running_server(places, expect_alive=True) as server:
        open_session(server, "hurt", 24, 80)
        type_in(server, "hurt", "echo DEAD''LY\r")
        wait_for_text(server, "hurt", "DEADLY")
        done = subprocess.run(
            [sys.executable, "-c", SHOW, str(server.socket)],
            env={**os.environ, **DEADLY},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done
        assert "dies of what this session shows" in " ".join(json.loads(done.stdout)), done
