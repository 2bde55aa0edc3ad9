"""The list of sessions in `wsh attach`."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsh.client.attach.ask import Questions
from wsh.client.attach.switcher import SwitcherPage
from wsh.wire.json.object import JsonObject


def test_a_status_that_nobody_could_tell_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(name: str, exit_code: int | None) -> JsonObject:
        facts: JsonObject = {"running": False, "clients": 0, "last_activity_ms": 0, "tags": [], "cwd": "/"}
        return facts | {"name": name, "exit_code": exit_code, "command": "make"}

    monkeypatch.setattr(Questions, "list_sessions", lambda _: [make("known", 3), make("lost", None)])
    page = SwitcherPage(Questions(Path("unused")), "known")
    lines = page.show(10, 80)[0]["lines"]
    assert isinstance(lines, list)
    assert ["exited 3  make" in lines[0], "exited  make" in lines[1], "None" in "".join(lines)] == [True, True, False]
