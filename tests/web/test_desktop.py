"""What a person at a desk meets all day: marks that hold still, a grid and a queue by keys, Find over the terminal, sessions that ended."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page, own_page
from tests.web.test_page import link, make, until

# Every word that the mark of a session showed, from now on.
WATCH = """name => {
  const seen = window.seenWords = [];
  const look = () => {
    for (const one of document.querySelectorAll('.session'))
      if (one.querySelector('.name bdi').textContent === name) seen.push(one.querySelector('.state').title);
  };
  look();
  new MutationObserver(look).observe(document.querySelector('.sidebar'), {subtree: true, childList: true, attributes: true});
}"""


def lines(server: RunningServer, name: str) -> list[str]:
    found: list[str] = server.get(f"/sessions/{name}/scrollback?format=plain")["lines"]
    return found


def badge(page: Page) -> Locator:
    return page.locator(".place", has_text="Queue").locator(".count")


def mark(page: Page, name: str) -> Locator:
    return page.locator(".session", has_text=name).locator(".state")


def wait_for_mark(page: Page, name: str, word: str) -> None:
    expect(mark(page, name)).to_have_attribute("title", word)


def test_a_session_that_prints_now_and_then_keeps_its_mark(server: RunningServer, browser: Browser) -> None:
    make(server, "front", "cat")
    make(server, "beat", "sh -c 'for k in 1 2 3 4; do echo $k; sleep 2; done; exec sleep 1000'")
    with own_page(browser) as watched:
        page = watched.page
        page.clock.install()
        page.goto(link(server))
        page.locator(".session", has_text="front").click()
        expect(page.locator(".bar h1")).to_have_text("front")
        wait_for_mark(page, "beat", "running")
        page.evaluate(WATCH, "beat")
        wait_until(lambda: "4" in lines(server, "beat"), "some beats")
        assert set(page.evaluate("seenWords")) == {"running"}

        def is_quiet() -> bool:
            page.clock.fast_forward(15_000)
            return mark(page, "beat").get_attribute("title") == "quiet"

        wait_until(is_quiet, "a session that says nothing for long")


def test_a_command_that_is_never_silent_is_shown_as_running(server: RunningServer, browser: Browser) -> None:
    make(server, "busy")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        wait_for_mark(page, "busy", "idle")
        page.keyboard.type("while :; do echo on; sleep 0.2; done\n")
        wait_for_mark(page, "busy", "running")
        page.keyboard.press("Control+c")
        wait_for_mark(page, "busy", "idle")


def test_nobody_is_called_to_what_they_have_before_them(server: RunningServer, browser: Browser) -> None:
    make(server, "desk")
    make(server, "other")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        page.locator(".session", has_text="desk").click()
        until(watched, lambda t: "$" in t, "the prompt")
        page.keyboard.type("read -p 'sure? '\n")
        wait_until(lambda: server.get("/inbox")["wants"] == 1, "the question")
        wait_for_mark(page, "desk", "asks")
        with page.expect_response(lambda response: response.url.endswith("/inbox")):
            pass
        wait_until(lambda: page.evaluate("new Promise(done => requestAnimationFrame(() => done(true)))"), "a frame")
        assert badge(page).count() == 0
        page.locator(".session", has_text="other").click()
        expect(badge(page)).to_have_text("1")  # as soon as it is out of sight
        page.locator(".session", has_text="desk").click()
        page.keyboard.type("yes\n")
        page.keyboard.type("sh -c 'exit 4'\n")
        wait_until(lambda: any(one["exit_code"] == 4 for one in server.get("/sessions/desk/commands")), "it")
        wait_until(lambda: server.get("/inbox")["items"] == [], "what failed under one's eyes to be done")
        body = {"input": "sh -c 'exit 5'", "max_wait_ms": 60_000}
        assert server.request("POST", "/sessions/other/run", body, timeout=90).json["exit_code"] == 5
        page.keyboard.press("Alt+q")
        expect(page.locator(".inbox .entry")).to_have_count(1)
        expect(page.locator(".inbox .entry")).to_contain_text("failed 5")


def test_the_grid_shows_names_whole_and_goes_by_arrows(server: RunningServer, browser: Browser) -> None:
    for name in ("job-number-one", "job-number-two", "job-number-three"):
        make(server, name, "sh -c 'for k in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do : $k; done; exec cat'")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".session")).to_have_count(3)
        page.keyboard.press("Alt+g")
        names = page.locator(".tile .link")
        expect(names).to_have_count(3)
        assert names.evaluate_all("all => all.every(one => one.scrollWidth <= one.clientWidth)")
        first = page.locator(".tile .link:focus").inner_text()
        page.keyboard.press("ArrowRight")
        expect(page.locator(".tile .link:focus")).not_to_have_text(first)
        second = page.locator(".tile .link:focus").inner_text()
        page.keyboard.press("Enter")
        expect(page.locator(".bar h1")).to_have_text(second)
        page.keyboard.type("here\n")
        until(watched, lambda t: t.count("here") == 2, "the keyboard in the terminal")


def test_find_takes_no_room_from_the_program(server: RunningServer, browser: Browser) -> None:
    make(server, "sized")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        before = page.locator(".single .emulator").bounding_box()
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("f")
        expect(page.get_by_label("Find in this terminal")).to_be_focused()
        assert page.locator(".single .emulator").bounding_box() == before


def test_a_session_that_ended_says_so_and_is_closed_or_begun_again(server: RunningServer, browser: Browser) -> None:
    make(server, "brief", "sh -c 'echo over; exit 3'", tags=["red"])
    make(server, "other", "cat")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        page.locator(".session", has_text="brief").click()
        expect(page.locator(".ended")).to_contain_text("brief has ended with status 3")
        page.get_by_role("button", name="New one like it").click()
        expect(page.locator(".bar h1")).not_to_have_text("brief")
        made = page.locator(".bar h1").inner_text()
        info = server.get(f"/sessions/{made}")
        assert (info["command"], info["tags"]) == ("sh -c 'echo over; exit 3'", ["red"])
        expect(page.locator(".ended")).to_contain_text(f"{made} has ended")
        page.locator(".ended").get_by_role("button", name="Close").click()
        expect(page.locator(".session", has_text=made)).to_have_count(0)
        page.locator(".session", has_text="brief").click()
        page.locator(".menu summary").click()
        page.locator(".menu").get_by_role("button", name=re.compile("^Close$")).click()
        expect(page.locator(".session")).to_have_count(1)
