"""The scenario of all doors, with a session on another machine."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.host.conftest import Net
from tests.operation.test_every_door import REFUSED, run_scenario, speaking_mcp
from tests.support.http.talk import talk
from tests.support.operation.door import HttpDoor, Json, WebSocketDoor

pytestmark = pytest.mark.accept

FAR_REFUSED = REFUSED | {"await_any_idle": {"no_sessions"}}
"""Waiting for any session is about those of one machine; here there are none."""
_numbers = itertools.count(1)


def _new(folder: Path) -> Json:
    number = next(_numbers)
    return {"session": f"far/door{number}", "host": f"other{number}", "folder": str(folder)}


def test_every_operation_on_a_far_session_by_http_and_websocket(net: Net, tmp_path: Path) -> None:
    with talk(net.server, "/ws/json") as client, speaking_mcp(net.server) as mcp:
        run_scenario([HttpDoor(net.server), WebSocketDoor(client), mcp], _new(tmp_path), FAR_REFUSED)
        run_scenario([WebSocketDoor(client), HttpDoor(net.server), mcp], _new(tmp_path), FAR_REFUSED)


def test_every_operation_on_a_far_session_by_mcp(net: Net, tmp_path: Path) -> None:
    with talk(net.server, "/ws/json") as client, speaking_mcp(net.server) as mcp:
        run_scenario([mcp, HttpDoor(net.server), WebSocketDoor(client)], _new(tmp_path), FAR_REFUSED)
