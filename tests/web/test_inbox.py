"""The inbox at the page: what counts in the badge, the words of the states, and the list by keyboard and by touch."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page
from tests.web.test_access import AXE, grave

ASK = "sh -c 'printf \"go on? [y/N] \"; read answer'"
SHELL = "bash --norc --noprofile"


def make(server: RunningServer, name: str, command: str, state: str) -> None:
    assert server.request("POST", "/sessions", {"name": name, "command": command}).status == 201
    wait_until(lambda: server.get(f"/sessions/{name}")["state"] == state, f"{name} to be {state}")


def fail(server: RunningServer, name: str) -> None:
    body = {"input": "sh -c 'exit 3'", "max_wait_ms": 60_000}
    assert server.request("POST", f"/sessions/{name}/run", body, timeout=90).json["exit_code"] == 3


def items(server: RunningServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.get("/inbox")["items"]
    return found


@pytest.fixture
def three(server: RunningServer) -> RunningServer:
    """Two idle shells, one of which saw a failure, and a question."""
    make(server, "calm", SHELL, "idle")
    make(server, "broken", SHELL, "idle")
    fail(server, "broken")
    make(server, "question", ASK, "asks")
    return server


def sign_in(page: Page, server: RunningServer) -> None:
    page.goto(str(server.request("POST", "/auth/link").json["url"]))


def test_the_badge_counts_only_what_wants_a_person(three: RunningServer, browser: Browser) -> None:
    with open_page(browser) as watched:
        page = watched.page
        sign_in(page, three)
        expect(page.locator(".session")).to_have_count(3)
        expect(page.locator(".place", has_text="Queue").locator(".count")).to_have_text("1")
        expect(page.locator(".session", has_text="calm").locator(".state")).to_have_attribute("title", "idle")
        expect(page.locator(".session", has_text="question").locator(".state")).to_have_attribute("title", "asks")
        make(three, "editor", "vim -u NONE -i NONE -n", "open")
        expect(page.locator(".session", has_text="editor").locator(".state")).to_have_attribute("title", "open")
        three.request("POST", "/sessions/question/input", b"n\r")
        expect(page.locator(".place", has_text="Queue").locator(".count")).to_have_count(0)


def test_an_answer_from_before_a_mark_does_not_bring_the_entry_back(three: RunningServer, browser: Browser) -> None:
    held: list[tuple[Route, APIResponse]] = []
    later: list[Route] = []

    def hold(route: Route) -> None:
        if held:
            later.append(route)
        else:
            held.append((route, route.fetch()))

    with open_page(browser) as watched:
        page = watched.page
        sign_in(page, three)
        page.get_by_role("button", name="Queue").first.click()
        rows = page.locator(".inbox .entry > .row")
        expect(rows).to_have_count(2)
        page.route("**/inbox", hold)
        wait_until(lambda: page.evaluate("1") and held, "a look at the inbox")
        page.get_by_role("button", name="Done broken").click()
        expect(rows).to_have_count(1)
        route, answer = held[0]
        route.fulfill(response=answer)
        page.evaluate("() => new Promise((done) => setTimeout(done, 150))")
        assert rows.count() == 1
        for one in later:
            one.abort()
        page.unroute_all()


def test_the_inbox_is_worked_through_by_keyboard(three: RunningServer, browser: Browser) -> None:
    with open_page(browser, bypass_csp=True) as watched:
        page = watched.page
        sign_in(page, three)
        expect(page.locator(".bar h1")).to_be_visible()
        page.keyboard.press("Alt+q")
        rows = page.locator(".inbox .entry > .row")
        expect(rows).to_have_count(2)
        expect(rows.nth(0)).to_contain_text("go on? [y/N]")
        expect(rows.nth(1)).to_contain_text("failed 3")
        expect(rows.nth(1)).to_contain_text("exit 3")
        page.evaluate(AXE.read_text())
        assert grave(page) == []
        page.keyboard.press("j")
        expect(rows.nth(0)).to_be_focused()
        page.keyboard.press("j")
        expect(rows.nth(1)).to_be_focused()
        page.keyboard.press("e")
        expect(rows).to_have_count(1)
        expect(rows.nth(0)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".bar h1")).to_have_text("question")
    kinds = {one["kind"]: one["done"] for one in three.get("/inbox?all=true")["items"]}
    assert kinds == {"asks": False, "failed": True}


def test_an_entry_is_snoozed_on_a_phone(three: RunningServer, browser: Browser) -> None:
    with open_page(browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as watched:
        page = watched.page
        sign_in(page, three)
        expect(page.locator(".bar h1")).to_be_visible()
        page.get_by_role("button", name="Sessions").click()
        expect(page.locator(".place", has_text="Queue")).to_be_in_viewport()
        page.locator(".place", has_text="Queue").click()
        entries = page.locator(".inbox .entry")
        expect(entries).to_have_count(2)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        entries.nth(0).get_by_role("button", name="Snooze").tap()
        expect(entries).to_have_count(1)
    assert [one["kind"] for one in items(three)] == ["failed"]
    assert three.get("/inbox")["wants"] == 0
