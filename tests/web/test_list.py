"""The list of sessions: nothing is said of it before it is known, the one in front is in sight, and a picture that is still to come is no black one."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, Route, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page, wait_for_news
from tests.web.test_page import link, make, until

# The first pixel of the picture, and the ground of a terminal as the browser would paint it.
GROUNDS = """() => {
  const ground = document.createElement('canvas').getContext('2d');
  ground.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--terminal-ground').trim();
  ground.fillRect(0, 0, 1, 1);
  const picture = document.querySelector('.thumbnail').getContext('2d', {alpha: false});
  return [picture, ground].map(one => [...one.getImageData(0, 0, 1, 1).data].join());
}"""


def press(page: Page, key: str) -> None:
    page.keyboard.press("Control+Backslash")
    page.keyboard.press(key)


def test_before_the_list_is_known_no_session_is_said_to_be_gone(server: RunningServer, browser: Browser) -> None:
    make(server, "here")
    make(server, "there")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        held: list[Route] = []
        for parts in (1, 2):
            page.route("**/sessions", lambda route: held.append(route))
            page.reload()
            wait_for_news(page, lambda: held, "the list is asked for")
            expect(page.get_by_text("Waiting for the server")).to_have_count(parts)
            for text in ("is gone", "No sessions yet", "Open a shell"):
                expect(page.get_by_text(text)).to_have_count(0)
            page.keyboard.type(f"echo kept-$((40 + {parts}))\n")
            for route in held:
                route.continue_()
            held.clear()
            page.unroute("**/sessions")
            until(watched, lambda text, parts=parts: f"kept-{40 + parts}" in text, "what was typed meanwhile")  # type: ignore[misc]
            assert len(server.get("/sessions")) == 2
            if parts == 1:
                press(page, "|")
                page.keyboard.type("there")
                page.keyboard.press("Enter")
                until(watched, lambda text: "$" in text and "kept" not in text, "the other part")


def test_a_session_that_comes_while_the_list_is_on_its_way_is_shown(server: RunningServer, browser: Browser) -> None:
    with open_page(browser) as watched:
        page = watched.page
        old: list[Route] = []

        def hold(route: Route) -> None:
            """The first list is answered at once, and arrives late."""
            if old:
                route.continue_()
                return
            old.append(route)
            make(server, "late", "cat")
            # The page is told of the new one before this.
            page.wait_for_function("document.querySelectorAll('.session').length === 1")
            route.fulfill(json=[])

        page.route("**/sessions", hold)
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("late")
        wait_for_news(page, lambda: old, "the old list")
        expect(page.locator(".session")).to_have_count(1)
        page.keyboard.type("typed into it\n")
        until(watched, lambda text: "typed into it" in text, "the echo")


def test_a_session_that_ends_while_the_page_asks_about_it_is_shown_as_ended(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "brief", "sh -c 'stty -echo; echo here; read go; exit 3'")
    with open_page(browser) as watched:
        page = watched.page
        asked: list[Route] = []

        def hold(route: Route) -> None:
            """The first answer is given at once, and arrives late."""
            asked.append(route)
            if len(asked) > 1:
                route.continue_()
                return
            answer = route.fetch()
            assert server.request("POST", "/sessions/brief/input", b"\n").status == 204
            page.wait_for_function("document.querySelectorAll('.session.failed').length === 1")
            route.fulfill(response=answer)

        page.route("**/sessions/brief", hold)
        page.goto(link(server))
        wait_for_news(page, lambda: len(asked) > 1, "another question after an answer that was old")
        expect(page.locator(".session.failed")).to_have_count(1)
        expect(page.locator(".ended")).to_contain_text("has ended with status 3")


def test_the_session_in_front_is_in_sight_in_a_long_list(server: RunningServer, browser: Browser) -> None:
    for number in range(14):
        make(server, f"s{number:02}", "cat")
    with open_page(browser, viewport={"width": 1280, "height": 600}) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".session")).to_have_count(14)
        for name in ("s13", "s00"):
            press(page, "k")
            page.keyboard.type(name)
            page.keyboard.press("Enter")
            expect(page.locator(".bar h1")).to_have_text(name)
            expect(page.locator(".session.on")).to_contain_text(name)
            expect(page.locator(".session.on")).to_be_in_viewport(ratio=0.9)


def test_a_thumbnail_that_has_no_picture_yet_is_no_black_one(server: RunningServer, browser: Browser) -> None:
    make(server, "here", "cat")
    with open_page(browser, color_scheme="light") as watched:
        page = watched.page
        page.route_web_socket("**/sessions/here/ws/json*", lambda _socket: None)
        page.goto(link(server))
        expect(page.locator(".thumbnail")).to_have_count(1)
        wait_until(lambda: len(set(page.evaluate(GROUNDS))) == 1, "the ground of a terminal")
