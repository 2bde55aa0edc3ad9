"""Walks through the page with the keyboard alone: each step is a task that a person has, from the first key on."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page
from tests.web.test_page import link, make, until
from wsh.wire.token_file import TokenFile

PROMPT = 'sh -c \'stty -echo; printf "pass phrase: "; read x; stty echo; echo; echo "got ${#x}"; exec cat\''


def lead(page: Page, key: str) -> None:
    """The page's own key behind its leader."""
    page.keyboard.press("Control+\\")
    expect(page.locator(".hint")).to_be_visible()
    page.keyboard.press(key) if len(key) > 1 else page.keyboard.type(key)
    expect(page.locator(".hint")).to_have_count(0)


def run(server: RunningServer, name: str, command: str, token: str = "") -> None:
    body = {"input": command, "max_wait_ms": 60_000}
    assert server.request("POST", f"/sessions/{name}/run", body, token=token).status == 200


def test_commands_are_reached_copied_linked_and_run_again_by_keys(server: RunningServer, browser: Browser) -> None:
    make(server, "work")
    agent = TokenFile(server.places.tokens).add_agent("walker")
    run(server, "work", "echo first of $((1+1))", agent)
    run(server, "work", "seq 1 80")
    with open_page(browser, permissions=["clipboard-read", "clipboard-write"]) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "first of 2" in text, "what was printed before")
        page.keyboard.type("echo typed $((40+2))\n")  # 1: type, from the first moment
        until(watched, lambda text: "typed 42" in text, "what was typed")
        commands = page.locator(".timeline li")
        expect(commands).to_have_count(3)
        expect(commands.nth(0).locator(".by")).to_contain_text("you")
        expect(commands.nth(2).locator(".by")).to_contain_text(re.compile(r"agent walker.*\d:\d\d"))
        expect(commands.nth(2).locator(".code")).to_have_text("0")
        for _ in range(3):  # 2: back to the oldest command
            lead(page, "[")
        expect(commands.nth(2)).to_have_class(re.compile(r"\bat\b"))
        expect(page.locator(".block-mark")).to_have_count(1)
        lead(page, "y")  # 3: copy its output
        expect(page.locator(".toast", has_text="Output copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == "first of 2"
        lead(page, "l")  # 4: a link to it
        expect(page.locator(".toast", has_text="Link copied.")).to_be_visible()
        target = str(page.evaluate("navigator.clipboard.readText()"))
        assert target.endswith("#session=work&command=1")
        lead(page, "a")  # 5: run it again
        expect(commands).to_have_count(4)
        expect(commands.nth(0).locator("code")).to_have_text("echo first of $((1+1))")
        other = page.context.new_page()
        other.goto(target)
        expect(other.locator(".timeline li.at code")).to_have_text("echo first of $((1+1))")
        expect(other.locator(".timeline li.at .output")).to_have_text("first of 2")
        assert "#" not in other.url
        other.close()


def test_parts_layouts_and_groups_are_used_by_keys(server: RunningServer, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "app" / "src").mkdir(parents=True)
    make(server, "one", cwd=str(tmp_path / "app"))
    make(server, "two", cwd=str(tmp_path / "app" / "src"))
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("one")
        lead(page, "|")  # 6: split, choose the other session, type there
        expect(page.get_by_label("Filter", exact=True)).to_be_focused()
        page.keyboard.type("nothing has this")
        expect(page.locator(".chooser")).to_contain_text("No session matches.")
        page.get_by_label("Filter", exact=True).fill("tw")
        page.keyboard.press("ArrowDown")
        expect(page.locator(".chooser li button")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".pane.front")).to_have_attribute("data-pane", "two")
        page.keyboard.type("echo in $((1+1))\n")
        until(watched, lambda text: "in 2" in text, "what was typed in the new part")
        before = page.get_by_role("separator").get_attribute("aria-valuenow")
        lead(page, ">")
        expect(page.get_by_role("separator")).not_to_have_attribute("aria-valuenow", str(before))
        lead(page, "o")  # 7: to the next part and back into its terminal
        expect(page.locator(".pane.front")).to_have_attribute("data-pane", "one")
        page.keyboard.type("echo left $((3+4))\n")
        until(watched, lambda text: "left 7" in text, "what was typed in the first part")
        lead(page, "w")  # 8: keep the layout, change it, take it back
        page.keyboard.type("pair\n")
        expect(page.locator(".toast", has_text="Layout pair")).to_be_visible()
        lead(page, "x")
        expect(page.locator(".pane")).to_have_count(0)
        lead(page, "k")
        page.keyboard.type("layout pair")
        page.keyboard.press("Enter")
        expect(page.locator(".pane")).to_have_count(2)
        page.reload()
        expect(page.locator(".pane")).to_have_count(2)
        lead(page, "k")  # 9: groups, from the palette
        page.keyboard.type("sessions by project")
        page.keyboard.press("Enter")
        expect(page.locator(".sessions summary")).to_have_text(re.compile("app"))
        expect(page.locator(".sessions details .name")).to_have_text([re.compile("one"), re.compile("two")])


def test_a_hidden_prompt_is_answered_and_a_recording_looked_at_by_keys(server: RunningServer, browser: Browser) -> None:
    make(server, "vault", PROMPT)
    wait_until(lambda: server.get("/sessions/vault")["state"] == "hidden", "the prompt")
    agent = TokenFile(server.places.tokens).add_agent("opener")
    answers: list[int] = []
    call = threading.Thread(
        target=lambda: answers.append(
            server.request("POST", "/sessions/vault/input", b"s3same\r", token=agent, timeout=150).status
        )
    )
    call.start()
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        lead(page, "q")  # 10: an agent at a hidden prompt
        card = page.locator(".approval:not(.over)")
        expect(card).to_contain_text("6 characters, not shown, in session vault")
        assert "s3same" not in page.content()
        expect(card.get_by_role("button", name="Type once")).to_be_enabled()
        page.keyboard.press("j")
        for _ in range(8):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "Type once":
                break
        page.keyboard.press("Enter")
        mine = page.locator(".approval.over", has_text="in session vault")  # others may have left theirs
        expect(mine.locator(".verdict")).to_have_text("approved")
        call.join(90)
        assert answers == [204]
        lead(page, "t")
        until(watched, lambda text: "got 6" in text, "the answer to arrive")
        lead(page, "r")  # 11: the recording, from its start
        expect(page.get_by_role("button", name="Play")).to_be_enabled()
        page.keyboard.press("Home")
        expect(page.get_by_label("Time", exact=True)).to_have_value("0")
        page.keyboard.press("Space")
        page.keyboard.press("Escape")
        expect(page.locator(".bar h1")).to_have_text("vault")
        lead(page, "?")  # 12: the sheet of keys
        expect(page.get_by_role("heading", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.type("mine\n")
        until(watched, lambda text: "mine" in text, "the keyboard to be in the terminal again")
