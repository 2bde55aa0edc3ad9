"""Output that kills the terminal engine: the next server leaves it out, says so, and everything else goes on."""

from __future__ import annotations

import base64
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until
from tests.support.warm import run_warm
from wsh.wire.system.place import Places

# In 40 x 82, libghostty-vt of pyghostty 0.1.3 dies of this.
KILLER = base64.b64decode(
    "G1s5OVNKG104Ozt4G1s5OTk5YhtbOTlT8J+RqRtbOTk5OWJbG1s5OTk5YhtbPzY5aBtbNTsxMHM2NTUzNVm0X+T3/p5oOAxX/ZY/ZjNFVHlJ"
    "Wm5ZdnRAW19SRlg6dFRmQTFndUVJRF0gfDIlOT02Um9SaH0wYjpBZVI2Oio+eSdce09VPXoxJDM8ND83b81WWykvfUFZKTkkcDpcVS5PK11M"
    "QXpkc0RvR3NINE9eTGIndEZKOlVaKzVTSGUjU34sJHg2LTBdfFM7Jj4/Zzhvdmt1bWR1InM4OVteMyEhT14qWihsTFdEKVIkb2RgTzRSWVJy"
    "NzgrdCpqPF9HKl47IVxTQTtmbEF0eEpnKjJmaEskdXRVN0d0YGYlKCUkTUR0dG1oL0X7QIM="
)


def open_session(server: RunningServer, name: str, rows: int = 40, cols: int = 82) -> None:
    reply = server.request(
        "POST", "/sessions", {"name": name, "command": "bash --norc", "rows": rows, "cols": cols, "env": {"PS1": "$ "}}
    )
    assert reply.status in (200, 201), reply


def type_in(server: RunningServer, name: str, text: str) -> None:
    assert server.request("POST", f"/sessions/{name}/input", text.encode()).status in (200, 204)


def screen(server: RunningServer, name: str) -> str:
    return "\n".join(server.get(f"/sessions/{name}/screen?format=plain")["lines"])


def wait_for_text(server: RunningServer, name: str, text: str) -> None:
    wait_until(lambda: text in screen(server, name), f"{text!r} in {name}", seen=lambda: screen(server, name))


@contextmanager
def dying_server(places: Places, **options: Any) -> Iterator[RunningServer]:
    """A server that must be dead of a signal at the end; its keeper and sessions stay."""
    server = start_server(places, **options)
    try:
        yield server
        server.process.wait(60)
        assert server.process.returncode not in (0, 1, 2), server.output.read_text()
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


@contextmanager
def killed_server(places: Places) -> Iterator[RunningServer]:
    """A server that is killed at the end; its keeper and sessions stay."""
    server = start_server(places)
    try:
        yield server
        assert server.process.poll() is None, server.output.read_text()
    finally:
        server.process.kill()
        server.process.wait()


def test_bytes_that_the_engine_is_known_to_die_of_cost_their_session_a_few_bytes(
    places: Places, tmp_path: Path
) -> None:
    file = tmp_path / "killer"
    file.write_bytes(KILLER)
    with running_server(places) as server:
        open_session(server, "hurt")
        wait_for_text(server, "hurt", "$")
        type_in(server, "hurt", f"clear; cat {shlex.quote(str(file))}; printf '\\033c'; echo be''hind\r")
        wait_for_text(server, "hurt", "behind")
        info = server.get("/sessions/hurt")
        said = re.fullmatch(r"wsh left out (\d+) bytes that its terminal engine cannot parse", info["notice"])
        assert said and 0 < int(said[1]) < len(KILLER), info
        assert any(info["notice"] in line for line in server.get("/server/info")["warnings"])
        wait_until(lambda: KILLER in _journal(places), "the journal")
        for format in ("txt", "html", "svg"):
            assert server.request("GET", f"/sessions/hurt/recording?format={format}").status == 200
        server.stop(signal.SIGKILL)
        # and the next one does not stumble over the journal, which is whole
        with running_server(places, expect_alive=True) as again:
            assert "behind" in screen(again, "hurt")
            assert again.get("/sessions/hurt")["notice"] == info["notice"]


def _journal(places: Places) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(places.sessions.glob("*/journal.*.raw")))


DEADLY = {"PYTHONPATH": str(Path(__file__).parent.parent / "support" / "deadly")}


def poison(server: RunningServer, name: str, text: str) -> None:
    """Have the session print `text`, which the line that is typed does not contain."""
    try:
        type_in(server, name, f"printf '{text[:2]}''{text[2:]}'\r")
    except (OSError, HTTPException):
        pass  # it may die before it answers


def trigger(server: RunningServer, path: str, body: object = None) -> None:
    try:
        server.request("POST" if body else "GET", path, body)
    except (OSError, HTTPException):
        pass


def test_a_session_goes_on_in_the_state_that_a_killer_left(places: Places, tmp_path: Path) -> None:
    """The margins stay set, and the engine dies of every scroll between them: the first gap ends that."""
    file = tmp_path / "killer"
    file.write_bytes(KILLER)
    with killed_server(places) as server:
        open_session(server, "hurt")
        wait_for_text(server, "hurt", "$")
        server.request("POST", "/sessions/hurt/run", {"input": f"clear; cat {shlex.quote(str(file))}"}, timeout=180)
        for number in range(3):
            ran = server.request("POST", "/sessions/hurt/run", {"input": f"echo alive {number}"}, timeout=180).json
            assert ran["exit_code"] == 0 and ran["output"].strip() == f"alive {number}", ran
            assert f"alive {number}" in screen(server, "hurt")
        notice = server.get("/sessions/hurt")["notice"]
    with running_server(places) as server:
        assert server.get("/sessions/hurt")["notice"] == notice
        assert "alive 2" in screen(server, "hurt")
        ran = server.request("POST", "/sessions/hurt/run", {"input": "echo restored"}, timeout=180).json
        assert ran["exit_code"] == 0 and ran["output"].strip() == "restored", ran


@pytest.mark.parametrize(
    ("word", "path", "body"),
    [
        ("DEADLY", "", None),
        ("ENDLESS", "", None),
        ("NO-SNAPSHOT", "", None),
        ("\\033]2;NO-RESTORE\\007", "restart", None),
        ("NO-RESIZE", "/sessions/hurt/resize", {"cols": 60}),
        ("NO-READ", "/sessions/hurt/screen?format=styled", None),
    ],
)
def test_whatever_the_engine_dies_of_the_next_server_lives(
    places: Places, word: str, path: str, body: dict[str, int] | None
) -> None:
    environ = DEADLY | {"WSH_JOURNAL_SNAPSHOT_INTERVAL_S": "0.1", "WSH_SESSION_ENGINE_TIMEOUT_S": "1"}
    with dying_server(places, environ=environ) as server:
        open_session(server, "other")
        type_in(server, "other", "echo un''touched\r")
        wait_for_text(server, "other", "untouched")
        open_session(server, "hurt")
        type_in(server, "hurt", "echo be''fore\r")
        wait_for_text(server, "hurt", "before")
        poison(server, "hurt", word)
        if path == "restart":
            wait_until(lambda: any(places.sessions.glob("*/snapshot.*")), "a snapshot")
            wait_until(lambda: server.get("/sessions/hurt")["title"] == "NO-RESTORE", "the title")
            server.process.terminate()
            server.process.wait(60)
            _start_to_die(places, environ)
            server.process.returncode = -signal.SIGSEGV
        elif path:
            wait_until(lambda: _dies_of(server, path, body), "its death")
    with running_server(places, environ=environ) as server:
        assert "untouched" in screen(server, "other")
        assert "before" in screen(server, "hurt")
        notice = server.get("/sessions/hurt")["notice"]
        if path != "restart":
            assert "wsh left out" in notice, notice
        type_in(server, "hurt", "echo a''live\r")
        wait_for_text(server, "hurt", "alive")
        reply = server.request("POST", "/sessions/hurt/resize", {"rows": 30, "cols": 60})
        assert reply.status in (200, 204), reply
        server.get("/sessions/hurt/screen?format=styled")


def _start_to_die(places: Places, environ: dict[str, str]) -> None:
    """A server that dies while it starts, before or after it first answers."""
    try:
        server = start_server(places, environ=environ)
    except AssertionError as problem:
        if "the server ended with" not in str(problem):
            raise
        return
    try:
        server.process.wait(60)
    finally:
        server.process.kill()
        server.process.wait()


def _dies_of(server: RunningServer, path: str, body: dict[str, int] | None) -> bool:
    if server.process.poll() is None:
        # Another size each time: the first may come before the word does.
        trigger(server, path, None if body is None else body | {"rows": 20 + time.monotonic_ns() % 20})
    return server.process.poll() is not None


def _stays(server: RunningServer) -> Literal["alive", "dead", ""]:
    """Whether this server has set the session aside, or has died of it; nothing while that is not known."""
    if server.process.poll() is not None:
        return "dead"
    try:
        reply = server.request("GET", "/sessions/hurt")
    except (OSError, HTTPException):
        return ""
    return "alive" if reply.status == 200 and "set it aside" in (reply.json["notice"] or "") else ""


def test_a_session_that_kills_one_server_after_the_other_is_set_aside(places: Places) -> None:
    with dying_server(places, environ=DEADLY) as server:
        open_session(server, "other")
        open_session(server, "hurt")
        wait_for_text(server, "hurt", "$")
        poison_again = "while :; do printf STUB''BORN; sleep 0.1; done\r"
        type_in(server, "hurt", poison_again)
    for _ in range(10):
        try:
            server = start_server(places, environ=DEADLY)
        except AssertionError:
            continue
        if wait_until(lambda server=server: _stays(server), "a death, or a session set aside") == "alive":  # type: ignore[misc]
            break
    try:
        assert server.process.poll() is None, "no server stays alive"
        assert "$" in screen(server, "other")
        told = run_warm([sys.executable, "-m", "wsh.cli.main", "doctor"], text=True, timeout=120)
        assert told.returncode == 1 and "within a minute, over hurt" in told.stdout, told
        assert server.request("DELETE", "/sessions/hurt").status in (200, 204)
        type_in(server, "other", "echo go''es on\r")
        wait_for_text(server, "other", "goes on")
    finally:
        server.process.kill()
        server.process.wait()
    with running_server(places):
        pass
