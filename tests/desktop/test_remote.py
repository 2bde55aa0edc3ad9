"""Sessions of a running server, opened in the window."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.support.desktop.window import Desk
from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from wsh.client.model import SessionReply
from wsh.desktop.roster import name_place
from wsh.look import load


def test_a_session_of_the_server_is_shown_and_typed_into(server: RunningServer, window: Desk, tmp_path: Path) -> None:
    proof = tmp_path / "typed"
    body = {"name": "far", "command": "bash --norc", "cwd": str(tmp_path)}
    assert server.request("POST", "/sessions", body).status == 201
    window.show_terminal("far")
    wait_until(
        lambda: window.terminal_size() != (0, 0) and window.terminal_text().strip(),
        "the session's prompt in the window",
        seen=window.terminal_text,
    )
    assert _size(server, "far") == (24, 80), "looking changes nothing"
    cols = window.terminal_size()[1]
    before = window.pixels(*window.cells(0, 0, 4, cols))
    window.enter_command(f"echo from afar > {proof}; tput cols > {proof}.cols")
    wait_until(lambda: proof.exists() and proof.read_text() == "from afar\n", "what was typed in the window")
    wait_until(
        lambda: _size(server, "far") == window.terminal_size(),
        "the size of the window where somebody typed",
        seen=lambda: (_size(server, "far"), window.terminal_size()),
    )
    wait_until(lambda: window.pixels(*window.cells(0, 0, 4, cols)) != before, "what the server's session shows")
    assert "from afar" in server.request("GET", "/sessions/far/screen?format=plain").body.decode()
    # What an agent lays over the session is in the picture, too.
    window.focus()
    overlaid = window.cells(12, 10, 3, 40)
    before = window.pixels(*overlaid)
    overlay = {"x": 10, "y": 12, "width": 40, "height": 3, "z": 1, "spans": [{"text": "LOOK HERE" * 8}]}
    assert server.request("POST", "/sessions/far/overlay", overlay).status == 201
    wait_until(lambda: "LOOK HERE" in window.terminal_text(), "the overlay", seen=window.terminal_text)
    wait_until(lambda: window.pixels(*overlaid) != before, "the overlay's picture in the window")
    assert server.request("DELETE", "/sessions/far").status in (200, 204)
    wait_until(lambda: not window.title().startswith("far "), "the killed session to go")


def _size(server: RunningServer, name: str) -> tuple[int, int]:
    info = server.get(f"/sessions/{name}")
    return info["rows"], info["cols"]


def test_sessions_of_the_server_say_what_they_wait_for(server: RunningServer, window: Desk, tmp_path: Path) -> None:
    colors = [load()[theme] for theme in ("dark", "light")]

    def shows(state: str) -> bool:
        return window.has_color("stateMark", {bytes.fromhex(theme[state].removeprefix("#")) for theme in colors})

    for name, command, state in (
        ("asks", "sh -c 'read answer'", "waiting"),
        ("secret", "sh -c 'stty -echo; read word'", "hidden"),
        ("broken", "sh -c 'exit 7'", "failed"),
    ):
        body = {"name": name, "command": command, "cwd": str(tmp_path)}
        assert server.request("POST", "/sessions", body).status == 201
        window.show_terminal(name)
        wait_until(partial(shows, state), f"{name} to be {state}")
        assert server.request("DELETE", f"/sessions/{name}").status in (200, 204)


def test_the_inbox_of_the_server_is_worked_through_by_keys(server: RunningServer, window: Desk, tmp_path: Path) -> None:
    for name, command in (("asker", "sh -c 'printf \"go on? \"; read answer'"), ("broken", "sh -c 'exit 7'")):
        assert (
            server.request("POST", "/sessions", {"name": name, "command": command, "cwd": str(tmp_path)}).status == 201
        )
    wait_until(lambda: [one["kind"] for one in server.get("/inbox")["items"]] == ["asks", "failed"], "both entries")
    window.press("ctrl+5")
    wait_until(lambda: window.shows("inboxRow1"), "both rows", seen=window.layout)

    def aside(kind: str) -> tuple[bool, bool]:
        one = next(one for one in server.get("/inbox?all=true")["items"] if one["kind"] == kind)
        return one["done"], one["snoozed_until"] is not None

    window.press("j", "e")
    wait_until(lambda: aside("failed") == (True, False), "the failed one to be done")
    wait_until(lambda: not window.shows("inboxRow1"), "one row", seen=window.layout)
    window.press("Return")
    wait_until(lambda: window.title().startswith("asker"), "the session that asks", seen=window.title)
    window.press("ctrl+5")
    wait_until(lambda: window.shows("inboxRow0"), "the list", seen=window.layout)
    window.press("s")
    wait_until(lambda: aside("asks") == (False, True), "the question to be snoozed")
    wait_until(lambda: not window.shows("inboxRow0"), "an empty list")
    for name in ("asker", "broken"):
        assert server.request("DELETE", f"/sessions/{name}").status in (200, 204)


def test_sessions_of_other_machines_stand_under_their_machine() -> None:
    here = SessionReply("job", cwd="/work")
    there = SessionReply("gpu1/train", cwd="/data", host="gpu1")
    away = SessionReply("gpu2/train", cwd="/data", host="gpu2", unreachable_since=1.0)
    assert [name_place(one) for one in (here, there, away)] == ["server: /work", "gpu1: /data", "gpu2: out of reach"]
