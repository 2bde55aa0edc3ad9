"""Sessions of a running server, opened in the window."""

from __future__ import annotations

from pathlib import Path

from tests.desktop.stage import Desk, wait_until
from tests.serving import RunningServer


def test_a_session_of_the_server_is_shown_and_typed_into(server: RunningServer, window: Desk, tmp_path: Path) -> None:
    proof = tmp_path / "typed"
    body = {"name": "far", "command": "bash --norc", "cwd": str(tmp_path)}
    assert server.request("POST", "/sessions", body).status == 201
    window.show_terminal("far")
    before = window.pixels(260, 60, 900, 80)
    window.enter(f"echo from afar > {proof}; tput cols > {proof}.cols")
    wait_until(lambda: proof.exists() and proof.read_text() == "from afar\n", "what was typed in the window")
    wait_until(lambda: window.pixels(260, 60, 900, 80) != before, "what the server's session shows")
    assert "from afar" in server.request("GET", "/sessions/far/screen?format=plain").body.decode()
    # What an agent lays over the session is in the picture, too.
    window.focus()
    before = window.pixels(300, 300, 600, 200)
    overlay = {"x": 10, "y": 12, "width": 40, "height": 3, "z": 1, "spans": [{"text": "LOOK HERE" * 8}]}
    assert server.request("POST", "/sessions/far/overlay", overlay).status == 201
    wait_until(lambda: window.pixels(300, 300, 600, 200) != before, "the overlay in the window")
    assert server.request("DELETE", "/sessions/far").status in (200, 204)
    wait_until(lambda: not window.title().startswith("far "), "the killed session to go")
