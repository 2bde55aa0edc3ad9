"""The terminal by touch: held either way, composing a line, notices, and the way through earlier lines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until
from tests.support.web.browser import Watched, open_page, own_page
from tests.web.test_page import link, make, until
from tests.web.test_phone import COVERED, PHONE
from wsh.wire.system.place import Places

# What is wider than the screen, beside what scrolls in a row of its own.
WIDER = """() => [...document.querySelectorAll('body, .page *')]
  .filter(e => !e.closest('.emulator, .hands') && e.getBoundingClientRect().right > innerWidth + 1
    && getComputedStyle(e).visibility !== 'hidden').map(e => e.className || e.tagName)"""


@pytest.fixture
def phone(server: RunningServer, browser: Browser) -> Iterator[Watched]:
    make(server, "work", rows=24, cols=80)
    with open_page(browser, **PHONE) as watched:
        watched.page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        yield watched


def turn(watched: Watched, width: int, height: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": height})
    wait_until(lambda: watched.page.evaluate("[innerWidth, innerHeight]") == [width, height], "the turned screen")
    assert watched.page.evaluate(WIDER) == []
    assert watched.page.evaluate("[document.documentElement.scrollWidth, visualViewport.scale]") == [width, 1]


def test_a_phone_held_sideways_has_a_drawer_and_one_row_of_keys(phone: Watched, server: RunningServer) -> None:
    page = phone.page
    page.locator(".xterm").first.tap()
    page.keyboard.type("x")
    wait_until(lambda: server.get("/sessions/work")["cols"] < 80, "the phone's size")
    upright = server.get("/sessions/work")["rows"]
    keys = page.get_by_role("toolbar", name="Keys")
    for width, height in ((844, 390), (740, 360), (844, 200)):
        turn(phone, width, height)
        expect(page.locator(".sidebar")).not_to_be_in_viewport()
        tops = keys.get_by_role("button").evaluate_all("all => all.map(e => e.getBoundingClientRect().top)")
        assert len(tops) == 14 and len(set(tops)) == 1, "one row"
        keys.get_by_role("button", name="/").tap()
        wait_until(lambda: server.get("/sessions/work")["cols"] > 80, "the size of the turned screen")
    wait_until(lambda: server.get("/sessions/work")["rows"] < upright / 2, "that of one with its keyboard up")
    assert page.locator(".emulator").evaluate("e => e.clientHeight") > 100, "more than half is the terminal's"
    turn(phone, 844, 390)
    page.get_by_role("button", name="Commands").tap()
    expect(page.locator(".inspector")).to_be_in_viewport()
    assert page.evaluate(WIDER) == []
    page.get_by_role("button", name="Hide").tap()
    page.get_by_role("button", name="Sessions").first.tap()
    expect(page.locator(".session")).to_be_in_viewport()
    page.get_by_role("button", name="Go to…").tap()
    page.get_by_role("option", name="Theme: dark").tap()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator(".sidebar")).not_to_be_in_viewport()
    turn(phone, 390, 844)
    wait_until(lambda: server.get("/sessions/work")["rows"] == upright, "the size of before")
    wait_until(lambda: page.evaluate("wshSize().rows") == upright, "all rows to be shown")
    expect(keys.get_by_role("button", name="ArrowRight")).to_be_in_viewport()
    turn(phone, 390, 420)  # upright, with its keyboard up
    for key in ("esc", "tab", "ArrowRight"):
        expect(keys.get_by_role("button", name=key)).to_be_in_viewport(ratio=1)


def test_a_composed_line_goes_without_enter_where_that_is_wanted(phone: Watched) -> None:
    page = phone.page
    page.get_by_label("A line to send").fill("echo one-")
    page.get_by_role("button", name="without Enter").tap()
    until(phone, lambda text: "$ echo one-" in text, "the line")
    expect(page.get_by_label("A line to send")).to_have_value("")
    page.get_by_label("A line to send").fill("two")
    page.get_by_role("button", name="Send", exact=True).tap()
    assert "\none-two" in until(phone, lambda text: "\none-" in text, "its output")


def test_a_line_sent_while_the_server_is_away_is_said_to_be_kept_and_goes_when_it_is_back(
    places: Places, browser: Browser
) -> None:
    server = start_server(places)
    make(server, "work")
    with own_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        server.process.kill()
        server.process.wait()
        notice = page.get_by_role("status").filter(has_text="is kept, and sent when the server is back")
        expect(notice).to_be_visible()
        expect(page.locator(".lost")).to_have_count(0)
        assert page.evaluate(COVERED) == []
        page.locator(".notice").get_by_role("button", name="Dismiss").tap()
        expect(notice).to_have_count(0)
        page.get_by_label("A line to send").fill("echo $((40+2))")
        page.get_by_role("button", name="Send", exact=True).tap()
        expect(notice).to_be_visible()
        with running_server(places, bind=f"127.0.0.1:{server.port}"):
            expect(notice).to_have_count(0)
            until(watched, lambda text: "\n42" in text, "the line that was kept")


FIRST_ROW = "Number(document.querySelector('.single .xterm-rows > div').textContent)"


def test_one_tap_leads_to_the_first_line_or_the_end(server: RunningServer, browser: Browser) -> None:
    make(server, "numbers", "sh -c 'seq 1 3000; exec cat'", rows=30, cols=40)
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "\n3000" in text, "the numbers")
        wait_until(lambda: page.evaluate(FIRST_ROW) > 2900, "the end to be shown")
        end = page.evaluate(FIRST_ROW)
        expect(page.get_by_role("button", name="To the end")).to_have_count(0)
        page.keyboard.press("Shift+PageUp")
        page.get_by_role("button", name="To the first line").wait_for()
        page.get_by_role("button", name="To the first line").tap()
        wait_until(lambda: page.evaluate(FIRST_ROW) == 1, "the first line")
        page.get_by_role("button", name="To the end").tap()
        wait_until(lambda: page.evaluate(FIRST_ROW) == end, "the last line")
        expect(page.get_by_role("button", name="To the end")).to_have_count(0)


def type_size(watched: Watched) -> float:
    return float(watched.page.locator(".single .xterm-rows").evaluate("e => parseFloat(getComputedStyle(e).fontSize)"))


def test_a_session_of_many_rows_or_columns_can_be_read(server: RunningServer, browser: Browser) -> None:
    """Held sideways, few rows have room: they are panned, and their type stays. Upright, larger type pans the columns."""
    make(server, "work", rows=40, cols=60)
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        turn(watched, 844, 390)
        wait_until(lambda: type_size(watched) >= 11, "type that can be read", seen=lambda: type_size(watched))
        turn(watched, 390, 844)
        wait_until(lambda: type_size(watched) < 11, "all columns")
        small = type_size(watched)
        for _ in range(5):
            page.locator(".menu summary").tap()
            page.get_by_role("button", name="Larger type").tap()
        wait_until(lambda: type_size(watched) > small, "larger type", seen=lambda: type_size(watched))
        assert (server.get("/sessions/work")["rows"], server.get("/sessions/work")["cols"]) == (40, 60)


FREE_WHILE_TOLD = """e => {
  const r = e.getBoundingClientRect();
  const top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
  return e.contains(top) && document.querySelectorAll('.toasts > *').length === 1;
}"""


def test_the_drawer_lies_over_what_is_told(phone: Watched) -> None:
    page = phone.page
    page.locator(".menu summary").tap()
    page.get_by_role("button", name="Copy what is shown").tap()
    expect(page.locator(".toasts > *")).to_have_count(1)
    page.get_by_role("button", name="Sessions").first.tap()
    new = page.get_by_role("button", name="New", exact=True)
    wait_until(lambda: new.evaluate(FREE_WHILE_TOLD), "the drawer to be whole while something is told")
