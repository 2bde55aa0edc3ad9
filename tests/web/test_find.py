"""Earlier lines come as somebody looks back at them, without a seam, and Find goes through all that the server keeps."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import HeldSight, Watched, open_page, wait_for_news
from tests.web.test_page import link, make, until


def numbers(watched: Watched) -> list[int]:
    return [int(word) for word in re.findall(r"^(\d+)$", watched.text(), re.MULTILINE)]


# The number in the first line of all that the page has.
FIRST = "Number(/^\\d+$/m.exec(window.wshText())[0])"


def first_row(page: Page) -> str:
    return page.locator(".single .xterm-rows > div").first.inner_text().strip()


@pytest.mark.parametrize(("last", "first"), [(3000, 1), (20_000, 10_200)])
@pytest.mark.parametrize("live", [True, False])
def test_lines_that_the_server_keeps_come_as_one_scrolls_up(
    server: RunningServer, browser: Browser, last: int, first: int, live: bool
) -> None:
    make(server, "long", "bash --norc" if live else f"sh -c 'seq 1 {last}; exec cat'", rows=24, cols=80)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        if live:
            until(watched, lambda text: "$" in text, "the prompt")
            page.keyboard.type(f"seq 1 {last}\n")
        until(watched, lambda text: f"\n{last}\n" in text, "the last line")

        page.keyboard.press("Shift+Home")

        def is_whole() -> bool:
            if page.evaluate(FIRST) > first:
                return False
            found = numbers(watched)
            return found == list(range(found[0], last + 1))

        wait_until(is_whole, "all lines that are kept, none missing or doubled", seen=lambda: numbers(watched)[:3])
        top = "window.wshText().split('\\n', 1)[0]"
        wait_until(lambda: first_row(page) == page.evaluate(top), "the sight of it", seen=lambda: first_row(page))
        rows = watched.text().split("\n")
        assert [row for row in rows[: rows.index(str(last))] if not row.strip()] == [], "no blank row between them"
        page.keyboard.type("x")
        expect(page.locator(".single .xterm-rows")).to_contain_text(str(last))


def test_the_place_that_one_looks_at_stays_while_more_lines_come(server: RunningServer, browser: Browser) -> None:
    make(server, "long", "sh -c 'seq 1 5000; exec cat'", rows=60)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "\n5000\n" in text, "the last line")
        before = numbers(watched)[0]
        assert before > 2000
        at = int(first_row(page))
        while page.evaluate(FIRST) == before:
            page.keyboard.press("Shift+PageUp")
            at -= 59  # as much with each press, also while lines come
            expect(page.locator(".single .xterm-rows > div").first).to_have_text(re.compile(rf"^{at}\s*$"))


def test_a_page_back_is_one_also_where_its_lines_are_late(server: RunningServer, browser: Browser) -> None:
    make(server, "long", "sh -c 'seq 1 5000; exec cat'", rows=60)
    with open_page(browser) as watched:
        page = watched.page
        sight = HeldSight(page)
        page.goto(link(server))
        until(watched, lambda text: "\n5000\n" in text, "the last line")
        sight.hold()
        at, first = int(first_row(page)), numbers(watched)[0]
        while at >= first - 2 * 59:
            page.keyboard.press("Shift+PageUp")
            at -= 59
        expect(page.locator(".single .xterm-rows > div").first).to_have_text(re.compile(rf"^{first}\s*$"))
        wait_for_news(page, lambda: sight.kept, "the answer of the server")
        sight.let_go()
        expect(page.locator(".single .xterm-rows > div").first).to_have_text(re.compile(rf"^{at}\s*$"))


def test_find_goes_to_the_nearest_above_and_counts_all_that_the_server_keeps(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "lines", "sh -c 'seq 1 5000; exec cat'")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "\n5000\n" in text, "the numbers")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("f")
        page.keyboard.type("77")
        told, rows = page.locator(".find .told"), page.locator(".single .xterm-rows")
        count = sum("77" in str(number) for number in range(1, 5001))
        expect(told).to_have_text(f"{count} of {count}")
        expect(rows).to_contain_text("4977")
        expect(page.locator(".found.now")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(told).to_have_text(f"{count - 1} of {count}")
        expect(rows).to_contain_text("4877")
        page.keyboard.press("Shift+Enter")
        expect(told).to_have_text(f"{count} of {count}")
        page.keyboard.press("Shift+Enter")  # around
        expect(told).to_have_text(f"1 of {count}")
        expect(rows).to_contain_text(re.compile(r"7677"))
        page.keyboard.type("no such")
        expect(told).to_have_text("Nothing found")
        expect(page.locator(".found")).to_have_count(0)
        page.get_by_label("Find in this terminal").fill("(")
        page.get_by_role("button", name="Pattern").click()
        expect(told).to_have_text("Not a pattern")
        expect(page.get_by_label("Find in this terminal")).to_be_focused()
        page.get_by_label("Find in this terminal").fill("^42.5$")
        expect(told).to_have_text("1 of 10")
        page.keyboard.press("Escape")
        expect(page.locator(".found")).to_have_count(0)
        page.keyboard.type("back in the terminal\n")
        until(watched, lambda text: "back in the terminal" in text, "the keyboard")


def test_find_sees_words_that_a_row_breaks_and_what_is_printed_meanwhile(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "broken", "sh -c 'printf %078dNEEDLE 0; echo; exec cat'", rows=24, cols=80)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "EDLE" in text, "the line")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("f")
        page.keyboard.type("needle")
        told = page.locator(".find .told")
        expect(told).to_have_text("1 of 1")
        expect(page.locator(".found.now")).to_have_count(2)
        page.get_by_role("button", name="Match case").click()
        expect(told).to_have_text("Nothing found")
        page.get_by_role("button", name="Match case").click()
        server.request("POST", "/sessions/broken/input", b"another needle\r")
        expect(told).to_have_text("1 of 3")
