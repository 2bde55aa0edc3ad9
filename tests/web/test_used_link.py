"""A sign-in link that was used before, and how many clients one browser is."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import own_page
from tests.web.test_page import link, make


def test_a_used_link_leads_to_the_page_where_the_browser_is_signed_in(server: RunningServer, browser: Browser) -> None:
    make(server, "mine", "cat")
    url = link(server)
    with own_page(browser) as watched:
        page = watched.page
        page.goto(url)
        expect(page.locator(".bar h1")).to_have_text("mine")
        page.goto(url)
        expect(page.locator(".bar h1")).to_have_text("mine")
        assert "code=" not in page.url
    with own_page(browser) as stranger:
        answer = stranger.page.goto(url)
        assert answer is not None and answer.status == 403
        expect(stranger.page.get_by_role("heading", name="This link is used up")).to_be_visible()
        expect(stranger.page.locator("pre")).to_have_text("wsh link")
        stranger.complaints.clear()
    program = server.request("GET", "/auth/open?" + url.partition("?")[2], token=None)
    assert (program.status, program.code) == (403, "auth_invalid"), "a program gets an error it can read"


def test_one_browser_is_one_client(server: RunningServer, browser: Browser) -> None:
    for name in ("one", "two", "three"):
        make(server, name, "cat")
    with own_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".session")).to_have_count(3)

        def pages() -> list[object]:
            return [one["session"] for one in server.get("/clients")["clients"] if one["kind"] == "page"]

        front = page.locator(".bar h1").inner_text()
        wait_until(lambda: pages() == [front], "one client, told by the session that it shows", seen=pages)
        wait_until(lambda: server.get(f"/sessions/{front}")["clients"] == 1, "one client of that session")
        second = page.context.new_page()
        second.goto(server.url + "/ui/")
        expect(second.locator(".session")).to_have_count(3)
        assert len(pages()) == 1, "another tab is the same browser"
        with own_page(browser) as other:
            other.page.goto(link(server))
            expect(other.page.locator(".session")).to_have_count(3)
            wait_until(lambda: len(pages()) == 2, "another browser is another client", seen=pages)
