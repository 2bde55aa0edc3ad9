"""Every way a person can answer in the real window, and what the caller hears of it."""

from __future__ import annotations

import http.client
import json
from pathlib import Path

from tests.support.desktop.window import QUEUE, Asking, Desk, audit, execute
from tests.support.mcp.host import StdioHost
from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from wsh.wire.system.place import Places


def test_an_edited_command_runs_instead_and_the_caller_is_told(
    server: RunningServer, window: Desk, tmp_path: Path
) -> None:
    asked, instead = tmp_path / "asked", tmp_path / "instead"
    asking = Asking(server, execute("touch", str(asked)))
    window.wait_for_pending(1)
    window.press("ctrl+e")
    window.enter(f"touch {instead}")
    answer = asking.answer()
    assert answer["status"] == "completed", answer
    assert answer["result"]["edited_argv"] == ["touch", str(instead)]
    assert instead.exists() and not asked.exists()


def test_an_edit_that_destroys_wants_to_be_held(server: RunningServer, window: Desk, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    asking = Asking(server, execute("echo", "harmless", timeout_ms=4000))
    window.wait_for_pending(1)
    window.press("ctrl+e")
    window.enter(f"rm -f {victim}")
    window.press("Return")
    assert asking.answer()["result"]["approval"] == "pending"
    assert victim.exists()
    window.press("Escape", "ctrl+BackSpace")
    window.wait_for_pending(0)


def test_always_writes_the_shown_rule_and_the_next_one_is_not_asked(
    server: RunningServer, window: Desk, desk_places: Places, clean_policy: Path
) -> None:
    asking = Asking(server, execute("seq", "3"))
    window.wait_for_pending(1)
    window.press("ctrl+shift+a")
    window.enter("seq *")
    assert asking.answer()["result"]["stdout"].split() == ["1", "2", "3"]
    assert '"seq *"' in clean_policy.read_text()
    assert any(entry.get("change") == "allow" and entry.get("rule") == "seq *" for entry in audit(desk_places))
    again = Asking(server, execute("seq", "4")).answer()
    assert again["result"]["stdout"].split() == ["1", "2", "3", "4"]


def test_a_request_outlives_the_connection_that_posted_it_and_is_recorded_once(
    server: RunningServer, window: Desk, desk_places: Places, tmp_path: Path
) -> None:
    target = tmp_path / "made"
    caller = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {**server.auth, "wsh-role": "agent", "Content-Type": "application/json"}
    caller.request("POST", "/terminal", json.dumps(execute("touch", str(target))), headers)
    window.wait_for_pending(1)
    caller.close()
    window.press("ctrl+Return")
    wait_until(target.exists, "what was approved")
    window.wait_for_pending(0)

    def records() -> list[dict[str, object]]:
        entries = [entry for entry in audit(desk_places) if str(target) in entry.get("argv", [])]
        return [entry for entry in entries if "approval" in (entry.get("event"), entry.get("kind"))]

    wait_until(records, "the record")
    assert [(one["outcome"], one["where"], one["place"]) for one in records()] == [("approved", "window", "window")]


def test_something_destructive_runs_when_it_is_held_and_not_when_it_is_clicked(
    server: RunningServer, window: Desk, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    asking = Asking(server, execute("rm", "-f", str(victim)))
    window.wait_for_pending(1)
    x, y = window.middle("runOnce")
    window.click(x, y)
    window.wait_for_pending(1)
    assert victim.exists()
    window.hold_until(x, y, lambda: not victim.exists(), "the command that is held")
    assert asking.answer()["status"] == "completed"
    assert not victim.exists()


def test_an_mcp_client_gets_the_output_of_what_was_approved(server: RunningServer, window: Desk) -> None:
    with StdioHost() as client:
        client.initialize()
        arguments = execute("echo", "over stdio")
        id = client.start_request("tools/call", {"name": "memory_terminal_interactive", "arguments": arguments})
        window.wait_for_pending(1)
        window.press("ctrl+Return")
        result = client.wait_answer(id, 60)["result"]
    assert not result.get("isError")
    assert "over stdio" in result["structuredContent"]["result"]["stdout"]


def test_a_policy_file_changed_by_hand_holds_at_once_and_is_shown(
    server: RunningServer, window: Desk, clean_policy: Path
) -> None:
    window.press("ctrl+4")
    path, before = clean_policy, ""
    wait_until(lambda: not window.shows("notice"), "earlier notices to go")
    path.write_text(before + '\n[[rule]]\ncommand = "basename *"\neffect = "allow"\n')
    wait_until(lambda: window.shows("notice"), "the difference in the window")
    asked = execute("basename", "/a/by-hand")
    assert "by-hand" in Asking(server, asked).answer()["result"]["stdout"]
    path.write_text("this is no policy [[[")
    wait_until(lambda: window.shows("warning"), "the warning above the page")
    path.write_text(before)
    wait_until(lambda: not window.shows("warning"), "the warning to go")


def test_a_caller_that_floods_is_told_that_the_queue_is_full(server: RunningServer, window: Desk) -> None:
    waiting = [Asking(server, execute("echo", str(n))) for n in range(QUEUE)]
    window.wait_for_pending(QUEUE)
    answer = Asking(server, execute("echo", "too much")).answer()
    assert answer["success"] is False
    assert "full" in json.dumps(answer["error"]) or "many" in json.dumps(answer["error"]), answer
    for left in reversed(range(QUEUE)):
        window.press("ctrl+BackSpace")
        window.wait_for_pending(left)
    assert {each.answer()["error"]["code"] for each in waiting} == {"PM_TERM_DECLINED"}
