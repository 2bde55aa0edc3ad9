"""Policy, history and the terminal's view, used as a person uses them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.support.desktop.window import Asking, Desk, audit, desk, execute, virtual_screen
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from wsh.look import load
from wsh.wire.system.place import Places

RED = {bytes.fromhex(load()[theme]["danger"].removeprefix("#")) for theme in ("dark", "light")}
CYAN = {bytes.fromhex(load()[theme]["captured"].removeprefix("#")) for theme in ("dark", "light")}


def _headless(command: str, *args: str) -> dict[str, object]:
    return execute(command, *args, invocation={"mode": "headless", "intent": "execute_command"})


def test_rules_are_added_edited_and_removed_by_keys_and_hold_at_once(
    server: RunningServer, window: Desk, desk_places: Places, clean_policy: Path
) -> None:
    clean_policy.write_text("# mine\n[headless]\nallow = []\n")
    clean_policy.chmod(0o600)
    refused = Asking(server, _headless("printf", "hi")).answer()
    assert refused["error"]["code"] == "PM_TERM_BLOCKED_DESTRUCTIVE"
    window.press("ctrl+4", "alt+1")
    window.enter("printf *")
    wait_until(lambda: "printf *" in clean_policy.read_text(), "the rule in the file")
    assert clean_policy.read_text().startswith("# mine")
    assert Asking(server, _headless("printf", "hi")).answer()["result"]["stdout"] == "hi"
    window.box("rule printf *")
    # In place: the list, its first rule, other words.
    window.press("Down", "Return", "ctrl+a")
    window.enter("expr *")
    wait_until(lambda: "expr *" in clean_policy.read_text(), "the edited rule")
    assert "printf" not in clean_policy.read_text()
    assert Asking(server, _headless("printf", "hi")).answer()["success"] is False
    assert Asking(server, _headless("expr", "1", "+", "1")).answer()["result"]["stdout"].split() == ["2"]
    window.box("rule expr *")
    window.press("Delete")
    wait_until(lambda: "expr" not in clean_policy.read_text(), "the rule to go")
    changes = [entry.get("change") for entry in audit(desk_places) if entry.get("event") == "policy"]
    assert changes[-3:] == ["allow", "edit", "revoke"]


def test_a_rule_that_was_edited_stays_the_current_one(window: Desk, clean_policy: Path) -> None:
    clean_policy.write_text('[headless]\nallow = ["expr *", "printf *"]\n')
    clean_policy.chmod(0o600)
    window.press("ctrl+4", "alt+1")
    window.box("rule printf *")
    window.press("Down", "Return", "Escape", "Return", "ctrl+a")
    window.enter("factor *")
    window.box("rule factor *")
    window.press("Delete")
    wait_until(lambda: "factor" not in clean_policy.read_text(), "the edited rule to go", seen=clean_policy.read_text)
    assert "printf *" in clean_policy.read_text()


def test_limits_and_classes_are_written_and_audited(window: Desk, desk_places: Places, clean_policy: Path) -> None:
    window.press("ctrl+4", "alt+2")
    window.enter("/srv, /tmp")
    wait_until(lambda: clean_policy.exists() and '"/srv"' in clean_policy.read_text(), "the folders")
    # On to the time to answer: past the button that is gone again, and the variables.
    window.press("Tab", "Tab")
    window.enter("45")
    wait_until(lambda: "approval_ms = 45000" in clean_policy.read_text(), "the time to answer")
    window.press("Tab")
    window.enter("60")
    wait_until(lambda: "lifetime_ms = 60000" in clean_policy.read_text(), "the lifetime")
    window.press("Tab", "space")
    wait_until(lambda: "blocked" in clean_policy.read_text(), "the classes")
    assert '"delete"' not in clean_policy.read_text(), "the first class is off"
    changes = [entry.get("change") for entry in audit(desk_places) if entry.get("event") == "policy"]
    assert changes[-4:] == ["roots", "time to answer", "headless lifetime", "destructive classes"]


def test_a_request_waits_no_longer_than_the_policy_says(
    server: RunningServer, window: Desk, clean_policy: Path
) -> None:
    clean_policy.write_text("[interactive]\napproval_ms = 1500\n")
    clean_policy.chmod(0o600)
    assert Asking(server, execute("echo", "hurry")).answer(20)["error"]["code"] == "PM_TERM_TIMEOUT"


def test_a_broken_policy_file_is_said_above_every_page_until_it_is_mended(window: Desk, clean_policy: Path) -> None:
    def is_red() -> bool:
        return window.has_color("warning", RED)

    assert not is_red()
    clean_policy.write_text("this is no policy")
    clean_policy.chmod(0o600)
    wait_until(is_red, "the warning")
    clean_policy.write_text("[headless]\nallow = []\n")
    wait_until(lambda: not is_red(), "the warning to go")


def test_what_somebody_else_writes_into_the_file_is_told(window: Desk, clean_policy: Path) -> None:
    blue = {bytes.fromhex(load()[theme]["accent"].removeprefix("#")) for theme in ("dark", "light")}

    def is_told() -> bool:
        return window.has_color("notice", blue)

    wait_until(lambda: not window.shows("notice"), "earlier notices to go")
    clean_policy.write_text('[interactive]\nallow = ["uptime"]\n')
    clean_policy.chmod(0o600)
    wait_until(is_told, "the difference")


def test_history_is_exported_with_what_was_printed(server: RunningServer, window: Desk, tmp_path: Path) -> None:
    asking = Asking(server, execute("echo", "for the record"))
    window.wait_for_pending(1)
    window.press("ctrl+1", "ctrl+Return")
    trace = asking.answer()["correlation"]["trace_id"]
    out = tmp_path / "history.jsonl"
    window.press("ctrl+3", "ctrl+s")
    window.enter(str(out))
    wait_until(out.exists, "the exported history")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    (line,) = [line for line in lines if line["trace_id"] == trace]
    assert line["outcome"] == "approved" and line["exit_code"] == 0
    assert "for the record" in line["output"]


def test_while_an_agent_captures_keys_a_frame_says_so_and_the_way_out_works(
    server: RunningServer, window: Desk, tmp_path: Path
) -> None:
    body = {"name": "caught", "command": "bash --norc", "cwd": str(tmp_path)}
    assert server.request("POST", "/sessions", body).status == 201
    window.show_terminal("caught")

    def is_framed() -> bool:
        return window.has_color("captureBar", CYAN)

    assert not is_framed()
    captured = server.request("POST", "/sessions/caught/input/capture", {}, headers={"wsh-role": "agent"})
    assert captured.status < 300, captured.body
    wait_until(is_framed, "the frame")
    window.press("ctrl+backslash")
    wait_until(lambda: not is_framed(), "the frame to go")
    window.enter(f"echo mine > {tmp_path}/mine")
    wait_until((tmp_path / "mine").exists, "keys that reach the program again")
    assert server.request("DELETE", "/sessions/caught").status < 300


def test_a_link_is_opened_only_if_it_shows_something(places: Places, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "xdg-open"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$1" >> {opened}\n')
    script.chmod(0o755)
    environ = {"PATH": f"{folder}:{os.environ['PATH']}", "BROWSER": str(script), "SHELL": "/bin/sh"}
    lines = tmp_path / "lines"
    good, bad = "https://example.org/page", "ssh://example.org/x"
    rows = [f"\033]8;;{link}\033\\{'link' * 20}\033]8;;\033\\" for link in (good, bad)]
    lines.write_text("\033[2J\033[H" + "\r\n".join([*rows * 4]) + "\r\n")
    with virtual_screen() as display, desk(places, display, environ=environ) as window:
        window.press("ctrl+shift+n")
        wait_until(lambda: " – " in window.title(), "a terminal")
        window.enter(f"clear; cat {lines}; touch {tmp_path}/shown")
        wait_until(lambda: "linklink" in window.terminal_text(), "the links", seen=window.terminal_text)

        def is_opened() -> bool:
            for row in range(1, 4):
                left, top, _, height = window.cells(row, 20)
                at = (str(left + 2), str(top + height // 2))
                window._tool("mousemove", *at, "keydown", "ctrl", "click", "1", "keyup", "ctrl")
            return opened.exists()

        wait_until(is_opened, "the link to be opened")
        assert set(opened.read_text().split()) == {good}


def test_a_request_that_nobody_sees_is_notified(places: Places, tmp_path: Path) -> None:
    assert shutil.which("dbus-daemon"), "Debian's dbus"
    bus = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE, text=True
    )
    assert bus.stdout is not None
    address = bus.stdout.readline().strip()
    heard = tmp_path / "heard"
    environ = {"DBUS_SESSION_BUS_ADDRESS": address}
    with heard.open("w") as out:
        monitor = subprocess.Popen(
            ["dbus-monitor", "--address", address, "interface=org.freedesktop.Notifications"], stdout=out
        )
    try:
        wait_until(lambda: heard.read_text(), "the monitor")
        with (
            virtual_screen() as display,
            desk(places, display, environ=environ) as window,
            running_server(places, check_left=False) as server,
        ):
            other = subprocess.Popen(["xterm", "-e", "sleep", "60"], env={**os.environ, "DISPLAY": display})
            try:
                # Somebody looks at another window.
                wait_until(lambda: _focus_other(window, "xterm") or _focus_other(window, "sleep"), "another window")
                asking = Asking(server, execute("echo", "<b>look</b>", timeout_ms=30_000))
                window.wait_for_pending(1)
                wait_until(lambda: "An agent asks" in heard.read_text(), "the notification")
                assert "&lt;b&gt;look" in heard.read_text(), "markup of a command is shown as text"
                window.press("ctrl+1", "ctrl+BackSpace")
                asking.answer()
            finally:
                other.terminate()
                other.wait(60)
    finally:
        monitor.terminate()
        monitor.wait(60)
        bus.terminate()
        bus.wait(60)
        bus.stdout.close()


def _focus_other(window: Desk, name: str) -> bool:
    try:
        found = window._tool("search", "--onlyvisible", "--class", name).split()
        window._tool("windowfocus", "--sync", found[-1])
    except (subprocess.CalledProcessError, IndexError):
        return False
    return True
