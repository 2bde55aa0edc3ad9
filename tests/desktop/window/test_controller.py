"""The real window on a virtual screen, with a real server asking and a keyboard answering."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.desktop.window import Asking, Desk, audit, execute
from tests.support.serving import RunningServer
from tests.support.waiting import HANG_S, wait_until
from wsh.desktop.window_process import WindowProcess
from wsh.look import load
from wsh.wire.system.place import Places


def test_a_key_approves_and_the_output_comes_back(server: RunningServer, window: Desk, desk_places: Places) -> None:
    asking = Asking(server, execute("sh", "-c", "echo approved; exit 3"))
    window.wait_for_pending(1)
    window.press("ctrl+Return")
    answer = asking.answer()
    assert answer["success"] is True and answer["status"] == "completed"
    assert "approved" in answer["result"]["stdout"] and answer["result"]["exit_code"] == 3
    window.wait_for_pending(0)
    trace = answer["correlation"]["trace_id"]
    assert any(entry.get("trace_id") == trace and entry.get("outcome") == "approved" for entry in audit(desk_places))


def test_declining_with_a_reason_tells_the_caller(server: RunningServer, window: Desk, tmp_path: Path) -> None:
    target = tmp_path / "made"
    asking = Asking(server, execute("touch", str(target)))
    window.wait_for_pending(1)
    window.press("ctrl+shift+BackSpace")
    window.enter("not on a friday")
    answer = asking.answer()
    assert answer["error"]["code"] == "PM_TERM_DECLINED"
    assert "not on a friday" in json.dumps(answer["error"])
    assert answer["fallback"]["strategy"] == "report_decline"
    assert not target.exists()


def withdraw(server: RunningServer, answer: dict[str, Any]) -> None:
    assert answer["result"]["approval"] == "pending", answer
    body = {"action": "terminate", "target": answer["identity"]}
    assert Asking(server, body).answer()["result"]["approval"] == "withdrawn"


def test_a_request_that_was_taken_back_ends_and_can_no_longer_run(
    server: RunningServer, window: Desk, tmp_path: Path
) -> None:
    target = tmp_path / "made"
    answer = Asking(server, execute("touch", str(target), timeout_ms=1500)).answer()
    window.wait_for_pending(1)
    withdraw(server, answer)
    window.wait_for_pending(0)
    window.press("ctrl+Return", unseen=True)
    assert not target.exists()


def test_the_default_key_never_approves_something_destructive(
    server: RunningServer, window: Desk, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    asking = Asking(server, execute("rm", "-f", str(victim), timeout_ms=4000))
    window.wait_for_pending(1)
    window.press("Return", "ctrl+Return", "space")
    withdraw(server, asking.answer())
    assert victim.exists()


def test_an_opened_terminal_can_be_typed_into(server: RunningServer, window: Desk, tmp_path: Path) -> None:
    body = {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "open_only"},
        "runtime": {"cwd": str(tmp_path), "timeout_ms": 60_000},
    }
    asking = Asking(server, body)
    window.wait_for_pending(1)
    window.press("ctrl+Return")
    answer = asking.answer()
    assert answer["success"] is True, answer
    assert window.shows("requestList"), "an answer never takes the page away"
    window.click(*window.middle("lastOutput"))
    wait_until(lambda: window.terminal_size()[0] > 0, "its terminal")
    proof = tmp_path / "typed"
    window.enter_command(f"echo by hand > {proof}")
    wait_until(lambda: proof.exists() and proof.read_text() == "by hand\n", "what was typed in the window")
    # Somebody asks to type into it: a badge stands beside its name.
    blue = {bytes.fromhex(load()[theme]["attention"].removeprefix("#")) for theme in ("dark", "light")}

    def has_badge() -> bool:
        return window.has_color("terminalBadge", blue)

    assert not has_badge()
    more = Asking(
        server,
        {
            "action": "execute",
            "invocation": {"mode": "interactive", "intent": "execute_command"},
            "target": {"session_id": answer["identity"]["session_id"]},
            "execution": {"command": "echo asked"},
            "runtime": {"timeout_ms": 30_000},
        },
    )
    window.wait_for_pending(1)
    wait_until(has_badge, "the badge")
    window.press("ctrl+1", "ctrl+Return")
    assert more.answer()["success"] is True
    wait_until(lambda: not has_badge(), "the badge to go")


def test_a_flood_can_be_interrupted_and_typed_after(window: Desk, tmp_path: Path) -> None:
    flooding, after = tmp_path / "flooding", tmp_path / "after"
    window.press("ctrl+shift+n")
    wait_until(lambda: " – " in window.title(), "a terminal")
    window.enter_command(f"touch {flooding}; yes a flood of words without end")
    wait_until(flooding.exists, "the flood")
    window.press("ctrl+c")
    window.enter(f"touch {after}")
    wait_until(after.exists, "what was typed after the flood")


def test_a_second_instance_raises_the_first_and_says_so(window: Desk, display: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wsh.desktop.main", "--port", "0"],
        env={**os.environ, "DISPLAY": display},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 3 and "runs already" in done.stderr
    assert window.process.poll() is None


def test_a_taken_port_is_said_with_what_to_do(places: Places, display: str) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "wsh.desktop.main", "--port", port],
            env={**os.environ, "DISPLAY": display},
            capture_output=True,
            text=True,
            timeout=HANG_S,
        )
    assert done.returncode == 5 and "--port" in done.stderr


async def test_a_window_that_comes_up_while_it_is_asked_to_go_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch, display: str
) -> None:
    monkeypatch.setenv("DISPLAY", display)
    came: list[str] = []
    window = WindowProcess([], lambda verb, _: came.append(verb), lambda: came.append("up"))
    window.spawn()
    ready, loop = asyncio.Event(), asyncio.get_running_loop()
    assert window._end is not None
    loop.add_reader(window._end, ready.set)
    await asyncio.wait_for(ready.wait(), HANG_S)
    loop.remove_reader(window._end)
    window.end()
    await asyncio.wait_for(window.run(), HANG_S)
    assert came == []
