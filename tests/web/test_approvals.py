"""Approvals in the page: a real browser, a real server, and the real window on a screen of its own, whose user set approvals.server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.desktop.window import Asking, Desk, audit, desk, execute, virtual_screen
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page
from tests.web.test_access import AXE, grave
from wsh.wire.system.place import Places, find_places


@pytest.fixture(scope="module")
def permitted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    root = tmp_path_factory.mktemp("approving")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (root / name).mkdir(mode=0o700)
            patch.setenv(variable, str(root / name))
        places = find_places()
        places.config_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        places.config_file.write_text("[approvals]\nserver = true\n")
        yield places


@pytest.fixture(scope="module")
def window(permitted: Places) -> Iterator[Desk]:
    with virtual_screen() as display, desk(permitted, display) as opened:
        yield opened


@pytest.fixture(scope="module")
def permitting(permitted: Places, window: Desk) -> Iterator[RunningServer]:
    with running_server(permitted, check_left=False) as running:
        yield running


@pytest.fixture
def page(permitting: RunningServer, window: Desk, browser: Browser) -> Iterator[Page]:
    window.wait_for_pending(0)
    window.press("ctrl+1")
    with open_page(browser, bypass_csp=True) as watched:
        watched.page.goto(str(permitting.request("POST", "/auth/link").json["url"]))
        yield watched.page


def shown(page: Page) -> Locator:
    """The one request that waits, as the page shows it."""
    if page.locator(".queue").count() == 0:
        page.locator(".asks").click()
    card = page.locator(".approval:not(.over)")
    expect(card).to_have_count(1)
    expect(card.locator(".choices")).to_be_visible()
    return card


def test_the_card_shows_the_evidence_of_the_window_and_runs_it_once(
    page: Page, permitting: RunningServer, window: Desk, permitted: Places, tmp_path: Path
) -> None:
    target = tmp_path / "made <b>here"
    asking = Asking(permitting, execute("touch", str(target)))
    window.wait_for_pending(1)
    expect(page).to_have_title("(1) wsh")
    card = shown(page)
    expect(card.get_by_label("Command")).to_have_text(f"touch '{target}'")
    for fact in ("/tmp", "/usr/bin/touch", "sha256 ", "agent", "trace_", " left"):
        expect(card).to_contain_text(fact)
    assert page.locator(".approval b b").count() == 0, "markup is text"
    page.evaluate(AXE.read_text())
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.wait_for_timeout(300)  # colours change within 80 ms
        assert grave(page) == [], scheme
    card.get_by_role("button", name="Run once").click()
    answer = asking.answer()
    assert answer["status"] == "completed" and target.exists()
    assert answer["result"]["approved_by"].startswith("owner:page via wsh")
    window.wait_for_pending(0)
    over = page.locator(".approval.over").first
    expect(over).to_contain_text("approved")
    expect(over).to_contain_text("owner:page")
    ours = [entry for entry in audit(permitted) if entry.get("trace_id") == answer["correlation"]["trace_id"]]
    (record,) = [entry for entry in ours if entry.get("kind") == "approval"]
    assert record["by"].startswith("owner:page") and record["where"] == "page"


def test_what_destroys_is_held_and_a_click_or_a_key_does_nothing(
    page: Page, permitting: RunningServer, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    asking = Asking(permitting, execute("rm", "-f", str(victim)))
    card = shown(page)
    expect(card.locator(".risk")).to_have_text("destructive")
    expect(card.locator(".why").first).to_be_visible()
    assert card.get_by_role("button", name="Always").count() == 0
    assert card.get_by_role("button", name="Allow for this session").count() == 0
    page.evaluate(AXE.read_text())
    assert grave(page) == []
    hold = card.get_by_role("button", name="Hold to run once")
    hold.click()
    hold.press("Enter")
    page.wait_for_timeout(1200)
    assert victim.exists() and asking.is_alive()
    hold.hover()
    page.mouse.down()
    answer = asking.answer()
    page.mouse.up()
    assert answer["result"]["authorization"] == "allowed_with_warning"
    assert not victim.exists()


def test_declining_with_a_reason_tells_the_caller(page: Page, permitting: RunningServer) -> None:
    asking = Asking(permitting, execute("echo", "declined"))
    card = shown(page)
    card.get_by_role("button", name="Decline with a reason…").click()
    page.get_by_label("Reason").fill("not on a Friday")
    page.keyboard.press("Enter")
    error = asking.answer()["error"]
    assert error["code"] == "PM_TERM_DECLINED" and "not on a Friday" in error["message"]
    expect(page.locator(".approval.over").first).to_contain_text("not on a Friday")


def test_other_words_run_instead_and_are_judged_anew(page: Page, permitting: RunningServer, tmp_path: Path) -> None:
    victim, instead = tmp_path / "victim", tmp_path / "instead"
    victim.write_text("x")
    asking = Asking(permitting, execute("echo", "asked"))
    card = shown(page)
    card.get_by_role("button", name="Edit…").click()
    field = page.get_by_label("Command to run instead")
    expect(field).to_have_value("echo asked")
    field.fill(f"rm -f {victim}")
    page.keyboard.press("Enter")
    expect(card.get_by_role("alert")).to_contain_text("destructive")
    expect(card.get_by_role("button", name="Hold to run this instead")).to_be_visible()
    assert victim.exists()
    field.fill("touch 'unclosed")
    page.keyboard.press("Enter")
    expect(card.get_by_role("alert")).to_contain_text("cannot be read")
    field.fill(f"touch {instead}")
    card.get_by_role("button", name="Run this instead").click()
    answer = asking.answer()
    assert answer["result"]["edited_argv"] == ["touch", str(instead)]
    assert instead.exists() and victim.exists()


def test_always_shows_the_rule_writes_it_and_the_next_one_is_not_asked(
    page: Page, permitting: RunningServer, permitted: Places
) -> None:
    asking = Asking(permitting, execute("seq", "3"))
    card = shown(page)
    card.get_by_role("button", name="Always…").click()
    page.get_by_label("Rule", exact=True).fill("seq *")
    expect(card.locator(".rule")).to_contain_text('command = "seq *"')
    expect(card).to_contain_text(str(permitted.policy_file))
    card.get_by_role("button", name="Write rule and run").click()
    assert asking.answer()["result"]["stdout"].split() == ["1", "2", "3"]
    assert '"seq *"' in permitted.policy_file.read_text()
    assert any(entry.get("rule") == "seq *" and "owner:page" in entry["by"] for entry in audit(permitted))
    assert Asking(permitting, execute("seq", "4")).answer()["result"]["stdout"].split() == ["1", "2", "3", "4"]


def test_for_this_session_the_same_command_is_not_asked_again(page: Page, permitting: RunningServer) -> None:
    asking = Asking(permitting, execute("basename", "/a/b"))
    shown(page).get_by_role("button", name="Allow for this session").click()
    assert "b" in asking.answer()["result"]["stdout"]
    again = Asking(permitting, execute("basename", "/a/b")).answer()
    assert again["result"]["approval_scope"] == "session"


def test_answered_in_both_places_at_once_exactly_one_counts(
    page: Page, permitting: RunningServer, window: Desk, tmp_path: Path
) -> None:
    log, script = tmp_path / "runs", tmp_path / "note.sh"
    script.write_text(f"#!/bin/sh\necho ran >> {log}\n")
    script.chmod(0o755)
    for number in range(3):
        log.unlink(missing_ok=True)
        asking = Asking(permitting, execute(str(script)))
        window.wait_for_pending(1)
        button = shown(page).get_by_role("button", name="Decline", exact=True)
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        assert box is not None
        window.focus()
        key = threading.Timer(0.02 * number, lambda: window._tool("key", "--clearmodifiers", "ctrl+Return"))
        key.start()
        # Not `button.click()`, which would wait for a button that the window's answer has taken away.
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        key.join()
        answer = asking.answer()
        window.wait_for_pending(0)
        expect(page.locator(".approval:not(.over)")).to_have_count(0)
        by_window = answer["success"]
        assert log.exists() is by_window and (not by_window or log.read_text() == "ran\n")
        if not by_window:
            assert answer["error"]["code"] == "PM_TERM_DECLINED"


def test_a_request_that_its_caller_gave_up_goes_and_cannot_be_answered(
    page: Page, permitting: RunningServer, tmp_path: Path
) -> None:
    target = tmp_path / "made"
    asking = Asking(permitting, execute("touch", str(target), timeout_ms=2500))
    page.evaluate(
        "(() => { const now = Date.now; Date.now = () => now() + 86_400_000; })()"
    )  # a device whose clock is wrong
    card = shown(page)
    expect(card.get_by_role("timer")).to_contain_text("min left")
    answer = asking.answer()
    assert answer["result"]["approval"] == "pending"
    expect(card).to_have_count(1)
    expect(card.get_by_role("timer")).to_contain_text("min left")
    Asking(permitting, {"action": "terminate", "target": answer["identity"]}).answer()
    wait_until(lambda: page.locator(".approval:not(.over)").count() == 0, "the card goes")
    assert not target.exists()
