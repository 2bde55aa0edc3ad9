"""What goes wrong around an open page: each has a state that says so and a way on, and nothing is complained about in the console."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page, own_page
from tests.web.test_page import focus_terminal, link, make, until
from tests.web.test_phone import PHONE
from wsh.wire.system.place import Places
from wsh.wire.token_file import TokenFile

PASTE = """text => {
  const data = new DataTransfer();
  data.setData('text/plain', typeof text === 'number' ? 'x'.repeat(text) : text);
  document.querySelector('.single .xterm-helper-textarea')
    .dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
}"""
LARGE = 10 * 1024 * 1024


def test_a_browser_without_a_sign_in_is_told_how_to_get_one(server: RunningServer, browser: Browser) -> None:
    with open_page(browser) as watched:
        answer = watched.page.goto(server.url + "/ui/")
        assert answer is not None and answer.status == 401
        expect(watched.page.locator("pre")).to_have_text("wsh link")


def test_a_token_that_was_changed_signs_the_page_out_with_the_command_to_run(places: Places, browser: Browser) -> None:
    with running_server(places) as server, own_page(browser) as watched:
        make(server, "open")
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        server.token = TokenFile(places.tokens).rotate_owner()
        expect(page.locator(".sign-in pre")).to_have_text("wsh link")
        expect(page.locator(".terminal")).to_have_count(0)
        page.reload()
        expect(page.locator("pre")).to_have_text("wsh link")
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("open")


def test_a_session_that_is_killed_while_open_goes_and_the_next_one_is_shown(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "doomed")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        assert server.request("DELETE", "/sessions/doomed").status == 204
        expect(page.locator(".empty-stage")).to_contain_text("No session is open")
        expect(page.get_by_role("button", name="New session")).to_be_visible()
        make(server, "heir", "sh -c 'echo I am the heir; exec cat'")
        expect(page.locator(".bar h1")).to_have_text("heir")
        until(watched, lambda t: "I am the heir" in t, "the next one")
        assert server.request("POST", "/sessions/heir/input", b"\x04").status == 204
        expect(page.locator(".bar .state")).to_have_text("exited 0")
        until(watched, lambda t: "I am the heir" in t, "what it printed stays readable")


def test_two_tabs_of_different_size_both_show_and_type_into_the_same_session(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "shared")
    with (
        open_page(browser, viewport={"width": 1280, "height": 800}) as wide,
        open_page(browser, viewport={"width": 820, "height": 500}) as narrow,
    ):
        for watched in (wide, narrow):
            watched.page.goto(link(server))
            until(watched, lambda t: "$" in t, "the prompt")
        sizes: set[tuple[int, int]] = set()

        def settled() -> bool:
            info = server.get("/sessions/shared")
            sizes.add((info["rows"], info["cols"]))
            return True

        for number, (here, there) in enumerate(((wide, narrow), (narrow, wide), (wide, narrow))):
            here.page.bring_to_front()
            here.page.set_viewport_size({"width": 900 + 60 * number, "height": 600 + 20 * number})
            focus_terminal(here.page)
            here.page.keyboard.type(f"echo typed-{number}\n")
            for watched in (here, there):
                until(watched, lambda t, n=number: f"\ntyped-{n}" in t, f"echo {number} in both")  # type: ignore[misc]
        wait_until(settled, "a size")
        sizes.clear()
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            settled()
            wide.page.wait_for_timeout(50)
        assert len(sizes) == 1, f"the tabs do not fight over the size: {sizes}"


def test_a_title_full_of_markup_and_control_characters_is_text_everywhere(
    server: RunningServer, browser: Browser
) -> None:
    title = "<script>alert(1)</script>&amp;<i>x\\342\\200\\256y\\302\\205z"
    make(server, "odd.name-1_2", f"sh -c 'printf \"\\033]2;{title}\\007\"; exec cat'", tags=["a/b:c"])
    with open_page(browser) as watched:
        page = watched.page
        alerts: list[str] = []

        def note(dialog: Dialog) -> None:
            alerts.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", note)
        page.goto(link(server))
        row = page.locator(".session .soft").first
        expect(row).to_contain_text("<script>alert(1)</script>&amp;<i>x")
        page.get_by_role("tab", name="Details").click()
        expect(page.locator(".inspector")).to_contain_text("<script>alert(1)</script>")
        page.keyboard.press("Alt+g")
        expect(page.locator(".tile header")).to_contain_text("<script>alert(1)</script>")
        assert page.locator("main i, .sidebar .about i:not(.tags i)").count() == 0
        assert page.locator("script:not([src])").count() == 0 and alerts == []


def test_a_name_that_cannot_be_is_refused_in_words_and_nothing_is_lost(server: RunningServer, browser: Browser) -> None:
    make(server, "kept")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        page.locator(".menu summary").click()
        page.get_by_role("button", name="Rename…").click()
        page.get_by_label("New name").fill("<b>no</b>\u202e")
        page.keyboard.press("Enter")
        expect(page.locator(".toast.bad")).to_contain_text("is not a session name")
        expect(page.locator(".toast.bad small")).to_contain_text("letters, digits")
        expect(page.locator(".bar h1")).to_have_text("kept")


@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
def test_a_session_that_cannot_be_opened_says_why_in_its_form(
    server: RunningServer, browser: Browser, device: dict[str, Any]
) -> None:
    make(server, "taken", "cat")
    with open_page(browser, **device) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda _: page.evaluate("window.wshSize()") is not None, "the terminal")
        if device:
            page.get_by_role("button", name="Sessions").first.click()
        page.get_by_role("button", name="New", exact=True).click()
        form = page.get_by_role("dialog", name="New session")
        why = form.get_by_role("alert")
        expect(why).to_have_count(0)
        form.get_by_label("Name").fill("taken")
        form.get_by_label("Command").fill("cat")
        form.get_by_role("button", name="Start").click()
        expect(why).to_contain_text("A session named 'taken' exists already. Choose another name")
        expect(why).to_be_in_viewport()
        expect(form.get_by_label("Name")).to_be_focused()
        expect(form.get_by_label("Name")).to_have_accessible_description(re.compile("exists already"))
        expect(form.get_by_label("Name")).to_have_attribute("title", re.compile("letters, digits"))
        expect(page.locator(".toast")).to_have_count(0)
        form.get_by_label("Name").fill("other")
        form.get_by_label("Command").fill("/no/such/program")
        form.get_by_role("button", name="Start").click()
        expect(why).to_contain_text("/no/such/program")
        expect(form.get_by_label("Command")).to_be_focused()
        form.get_by_label("Command").fill("cat")
        form.get_by_label("Working directory").fill("/no/such/folder")
        form.get_by_role("button", name="Start").click()
        expect(why).to_contain_text("/no/such/folder")
        expect(form.get_by_label("Working directory")).to_be_focused()
        form.get_by_label("Working directory").fill("/")
        page.keyboard.press("Enter")
        expect(page.locator(".bar h1")).to_have_text("other")
        expect(form).to_have_count(0)


def test_a_large_paste_is_asked_about_first_and_then_arrives_whole(server: RunningServer, browser: Browser) -> None:
    script = f"stty raw -echo; printf ready; head -c {LARGE} | wc -c; exec cat"
    make(server, "sink", f"sh -c '{script}'")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "ready" in t, "the program")
        page.evaluate(PASTE, LARGE)
        expect(page.get_by_role("dialog", name="Paste 10.0 MB into sink?")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.wait_for_timeout(200)
        assert str(LARGE) not in watched.text(), "nothing of it was sent"
        page.evaluate(PASTE, LARGE)
        expect(page.get_by_role("button", name="Paste", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        until(watched, lambda t: str(LARGE) in t, "every byte of it")
        expect(page.locator(".lost, .banner")).to_have_count(0)
        page.evaluate(PASTE, "small ones are not asked about")
        until(watched, lambda t: "small ones are not asked about" in t, "a small paste")


def test_captured_keys_have_a_frame_that_says_the_way_out(server: RunningServer, browser: Browser) -> None:
    make(server, "caught", "cat")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("caught")
        captured = server.request("POST", "/sessions/caught/input/capture", {}, headers={"wsh-role": "agent"})
        assert captured.status == 204, captured
        banner = page.locator(".capture")
        expect(banner).to_contain_text("Keys captured by")
        expect(banner).to_contain_text("Ctrl+\\")
        expect(page.locator(".terminal.captured")).to_be_visible()
        page.reload()
        expect(banner).to_contain_text("Keys captured by")
        focus_terminal(page)
        page.keyboard.type("unseen")
        page.keyboard.press("Control+\\")
        expect(banner).to_have_count(0)
        page.keyboard.type("seen")
        until(watched, lambda t: "seen" in t, "keys reach the program again")
        assert "unseen" not in watched.text()


def phone(page: Page, name: str) -> None:
    page.get_by_role("toolbar", name="Keys").get_by_role("button", name=name, exact=True).tap()


def test_a_phone_has_the_keys_that_its_keyboard_lacks(server: RunningServer, browser: Browser) -> None:
    make(server, "keys", "sh -c 'stty -icanon -echo; echo ready; exec cat -v'")
    with open_page(browser, viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "ready" in t, "the program")
        page.locator(".single .emulator").tap()
        for name in ("esc", "ArrowUp", "ArrowLeft", "tab", "|"):
            phone(page, name)
        until(watched, lambda t: re.search(r"\^\[\^\[\[A\^\[\[D\s+\|", t) is not None, "escape, arrows, tab, bar")
        phone(page, "alt")
        expect(page.get_by_role("button", name="alt")).to_have_attribute("aria-pressed", "true")
        page.keyboard.type("x")
        until(watched, lambda t: "^[x" in t, "alt and a letter")
        expect(page.get_by_role("button", name="alt")).to_have_attribute("aria-pressed", "false")
        phone(page, "ctrl")
        phone(page, "ArrowRight")
        until(watched, lambda t: "^[[1;5C" in t, "ctrl and an arrow")
        phone(page, "ctrl")
        page.keyboard.type("a")
        until(watched, lambda t: "^A" in t, "ctrl and a letter")
        phone(page, "ctrl")
        page.keyboard.type("c")
        expect(page.locator(".bar .state")).to_contain_text("exited")
