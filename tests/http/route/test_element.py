"""Overlays, panels, capture, focus and screen mode over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.http.route.test_session import settle, type_in, wait_for_text
from tests.support.serving import RunningServer
from wsh.wire.model.element import Overlay, Panel
from wsh.wire.token_file import TokenFile

Open = Callable[..., str]

OVERLAY = {"x": 2, "y": 1, "width": 12, "height": 3, "spans": [{"text": "hi", "id": "a", "fg": "red", "bold": True}]}
PANEL = {"position": "bottom", "height": 2, "spans": [{"text": "status", "id": "a"}]}


@pytest.mark.parametrize("kind", ["overlay", "panel"])
def test_an_element_lives_through_all_its_routes(server: RunningServer, open_session: Open, kind: str) -> None:
    base = f"/sessions/{open_session('cat')}/{kind}"
    wanted: dict[str, Any] = OVERLAY if kind == "overlay" else PANEL
    made = server.request("POST", base, wanted)
    assert made.status == 201 and set(made.json) == {"id"}
    one = f"{base}/{made.json['id']}"
    model = Overlay if kind == "overlay" else Panel
    shown = server.get(one)
    model.model_validate_json(server.request("GET", one).body)
    assert shown["visible"] and shown["screen_mode"] == "normal" and shown["z"] == 0
    assert server.get(base) == [shown]

    assert server.request("PUT", one, {"spans": [{"text": "new", "id": "b"}], "height": 1}).status == 204
    assert server.get(one)["spans"] == [{"text": "new", "id": "b"}] and server.get(one)["height"] == 1
    assert server.request("PATCH", one, {"z": 9, "background": "#102030"}).status == 204
    assert server.get(one)["background"] == {"rgb": {"r": 16, "g": 32, "b": 48}}
    assert server.request("POST", f"{one}/spans", {"spans": [{"text": "newer", "id": "b"}]}).status == 204
    assert server.request("POST", f"{one}/write", {"writes": [{"row": 0, "col": 3, "text": "w"}]}).status == 204
    shown = server.get(one)
    assert shown["spans"] == [{"text": "newer", "id": "b"}]
    assert shown["region_writes"] == [{"row": 0, "col": 3, "text": "w"}]

    second = server.request("POST", base, wanted).json["id"]
    assert server.get(f"{base}/{second}")["z"] == 10
    assert server.request("DELETE", one).status == 204
    gone = server.request("PATCH", one, {"z": 1})
    assert (gone.status, gone.code) == (404, f"{kind}_not_found")
    assert server.request("DELETE", base).status == 204 and server.get(base) == []


@pytest.mark.parametrize("kind", ["overlay", "panel"])
@pytest.mark.parametrize(
    "change",
    [
        {"height": 0},
        {"height": 1001},
        {"spans": [{"text": "x", "fg": "mauve"}]},
        {"spans": [{"text": "x"}] * 4097},
        {"spans": [{"text": "x" * 65537}]},
        {"spans": [{"text": "x", "size": 3}]},
        {"spans": "text"},
        {"z": "top"},
        {"unknown": 1},
    ],
)
def test_an_element_that_cannot_be_is_refused(
    server: RunningServer, open_session: Open, kind: str, change: dict[str, Any]
) -> None:
    base = f"/sessions/{open_session('cat')}/{kind}"
    wanted = OVERLAY if kind == "overlay" else PANEL
    reply = server.request("POST", base, {**wanted, **change})
    assert (reply.status, reply.code) == (400, f"invalid_{kind}")
    assert server.get(base) == []


def test_the_most_elements_is_a_clear_limit(server: RunningServer, open_session: Open) -> None:
    base = f"/sessions/{open_session('cat')}/overlay"
    for _ in range(256):
        assert server.request("POST", base, OVERLAY).status == 201
    reply = server.request("POST", base, OVERLAY)
    assert (reply.status, reply.code) == (429, "resource_limit_reached")


def test_a_panel_takes_rows_from_the_program_and_gives_them_back(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    settle(server, name)
    server.request("POST", f"/sessions/{name}/panel", {**PANEL, "height": 4})
    type_in(server, name, "stty size\r")
    wait_for_text(server, name, "20 80")
    assert server.get(f"/sessions/{name}/screen")["rows"] == 20
    assert server.get(f"/sessions/{name}")["rows"] == 24
    server.request("POST", f"/sessions/{name}/resize", {"rows": 40, "cols": 90})
    type_in(server, name, "clear; stty size\r")
    wait_for_text(server, name, "36 90")
    server.request("DELETE", f"/sessions/{name}/panel")
    type_in(server, name, "clear; stty size\r")
    wait_for_text(server, name, "40 90")


def test_capture_has_an_owner_and_a_person_can_end_it(server: RunningServer, open_session: Open) -> None:
    base = f"/sessions/{open_session('cat')}/input"
    one, two = (TokenFile(server.places.tokens).add_agent(name) for name in ("one", "two"))
    assert server.get(f"{base}/mode") == {"mode": "passthrough"}
    assert server.request("POST", f"{base}/capture", token=one).status == 204
    assert server.get(f"{base}/mode") == {"mode": "capture"}
    assert server.request("POST", f"{base}/capture", token=one).status == 204
    assert server.request("POST", f"{base}/capture", token=two).code == "input_captured"
    assert server.request("POST", f"{base}/release", token=two).code == "forbidden"
    assert server.request("POST", f"{base}/release").status == 204
    assert server.get(f"{base}/mode") == {"mode": "passthrough"}
    assert server.request("POST", f"{base}/release", token=two).status == 204


def test_focus_goes_to_what_can_take_it(server: RunningServer, open_session: Open) -> None:
    name = open_session("cat")
    base = f"/sessions/{name}/input"
    plain = server.request("POST", f"/sessions/{name}/overlay", OVERLAY).json["id"]
    able = server.request("POST", f"/sessions/{name}/overlay", {**OVERLAY, "focusable": True}).json["id"]
    assert server.get(f"{base}/focus") == {"focused": None}
    assert server.request("POST", f"{base}/focus", {"id": plain}).code == "not_focusable"
    assert server.request("POST", f"{base}/focus", {"id": "nobody"}).code == "not_found"
    assert server.request("POST", f"{base}/focus", {"id": able}).status == 204
    assert server.get(f"{base}/focus") == {"focused": able}
    assert server.request("POST", f"{base}/unfocus").status == 204
    assert server.get(f"{base}/focus") == {"focused": None}


def test_the_screen_mode_follows_agent_and_program(server: RunningServer, open_session: Open) -> None:
    name = open_session()
    base = f"/sessions/{name}/screen_mode"
    assert server.get(base) == {"mode": "normal"}
    assert server.request("POST", f"{base}/exit_alt").code == "not_in_alt_screen"
    assert server.request("POST", f"{base}/enter_alt").status == 204
    assert server.request("POST", f"{base}/enter_alt").code == "already_in_alt_screen"
    assert server.get(f"/sessions/{name}/screen")["mode"] == "alt"
    server.request("POST", f"/sessions/{name}/overlay", OVERLAY)
    assert server.request("POST", f"{base}/exit_alt").status == 204
    assert server.get(f"/sessions/{name}/overlay") == []
    type_in(server, name, "printf '\\033[?1049h'; echo in-$((1+1))\r")
    wait_for_text(server, name, "in-2")
    assert server.get(base) == {"mode": "alt"}
    shown = server.get(f"/sessions/{name}/screen")
    assert shown["alternate_active"] is True and shown["mode"] == "alt"
