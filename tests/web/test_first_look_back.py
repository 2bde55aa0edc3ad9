"""The first step back after long output goes as far as any other: the lines that are fetched for it move nothing."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_for_text, wait_until
from tests.support.web.browser import Watched, open_page
from tests.web.test_clipboard import CLIPBOARD, click_row, clip
from tests.web.test_find import first_row
from tests.web.test_finger import drag
from tests.web.test_page import link, make, until
from tests.web.test_phone import PHONE

# How many numbers hang together at the end.
TOGETHER = """() => {
  const numbers = window.wshText().split('\\n').filter(line => /^\\d+$/.test(line)).map(Number);
  let at = numbers.length - 1;
  while (at > 0 && numbers[at - 1] === numbers[at] - 1) at--;
  return numbers.length - at;
}"""
# The first row of each of so many frames.
TOPS = """async count => {
  const tops = [];
  while (tops.length < count) {
    await new Promise(requestAnimationFrame);
    tops.push(document.querySelector('.single .xterm-rows > div').innerText.trim());
  }
  return tops;
}"""
FETCHED = 1990


def notch(page: Page) -> None:
    page.locator(".single .emulator").hover()
    page.mouse.wheel(0, -120)


def page_up(page: Page) -> None:
    page.keyboard.press("Shift+PageUp")


def finger(page: Page) -> None:
    drag(page, 200, steps=20)


def printed(watched: Watched, last: int) -> int:
    """Let a shell print numbers; the one at the top of the screen afterwards."""
    page = watched.page
    until(watched, lambda text: "$" in text, "the prompt")
    page.locator(".single .emulator").click()
    page.keyboard.type(f"seq 1 {last}\n")
    until(watched, lambda text: f"\n{last}\n$" in text, "the numbers")
    # The screen is shown before the last lines that scrolled off it.
    wait_until(lambda: first_row(page).isdigit() and page.evaluate(TOGETHER) > 200, "the numbers above the screen")
    return int(first_row(page))


@pytest.mark.parametrize("last", [3000, 20_000])
@pytest.mark.parametrize(
    ("step", "options"), [(notch, {}), (page_up, {}), (finger, PHONE)], ids=["wheel", "keys", "finger"]
)
def test_the_first_step_back_after_long_output_is_a_small_one(
    server: RunningServer, browser: Browser, step: object, options: dict[str, object], last: int
) -> None:
    assert callable(step)
    make(server, "long", "bash --norc", rows=24, cols=80)
    with open_page(browser, **options) as watched:
        page = watched.page
        page.goto(link(server))
        at_end = printed(watched, last)
        step(page)
        wait_until(lambda: first_row(page) != str(at_end), "a step back")
        # Until what was left out is there, and a while after.
        wait_until(lambda: page.evaluate(TOGETHER) >= FETCHED, "the lines in between")
        tops: list[str] = page.evaluate(TOPS, 30)
        assert len(tops) == 30
        for top in tops:
            assert top.isdigit() and at_end - 100 <= int(top) < at_end, (at_end, tops)


# Steps back at the first moment at which the last number is on the screen, when lines above it are still to come: the number at its top, and the one that is a step above it.
STEP_AT_ONCE = """async last => {
  const rows = document.querySelector('.single .xterm-rows');
  const shown = () => [...rows.children].map(row => row.innerText.trim());
  await new Promise(done => {
    const look = () => shown().includes(String(last)) ? (seen.disconnect(), done()) : undefined;
    const seen = new MutationObserver(look);
    seen.observe(rows, {childList: true, subtree: true, characterData: true});
    look();
  });
  const top = Number(shown()[0]);
  const input = document.querySelector('.single textarea');
  input.dispatchEvent(new KeyboardEvent('keydown', {key: 'PageUp', code: 'PageUp', keyCode: 33, shiftKey: true, bubbles: true, cancelable: true}));
  return [top, top - rows.children.length + 1];
}"""


def test_a_step_back_at_the_moment_when_long_output_ends_is_a_small_one(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "long", "bash --norc", rows=24, cols=80)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        page.locator(".single .emulator").click()
        page.keyboard.type("seq 1 3000\n")
        at_end, back = page.evaluate(STEP_AT_ONCE, 3000)
        assert 2900 < at_end <= 3000
        wait_until(lambda: page.evaluate(TOGETHER) >= FETCHED, "the lines in between")
        tops: list[str] = page.evaluate(TOPS, 30)
        assert set(tops) == {str(back)}, (at_end, back, tops)


class HeldLines:
    """Stands between a page and its server, and holds back what follows the picture that shows the last number, if lines above it are still to come.

    On a machine that makes pictures so fast that all lines come with it, there is nothing to hold.
    """

    def __init__(self, page: Page, last: int) -> None:
        self._last = b"K%d" % last  # it is drawn on a row that was erased
        self._behind = self.holds = False
        self._kept: list[str | bytes] = []
        self._page: WebSocketRoute | None = None
        page.route_web_socket(re.compile("/ws/view"), self._join)

    def _join(self, page: WebSocketRoute) -> None:
        self._page = page
        page.connect_to_server().on_message(self._hear)

    def _hear(self, message: str | bytes) -> None:
        assert self._page is not None
        if self.holds:
            self._kept.append(message)
            return
        self._page.send(message)
        if isinstance(message, bytes):
            self.holds = self._behind and self._last in message
        elif (told := json.loads(message))["type"] == "behind":
            self._behind = told["lines"] > 0

    def let_go(self) -> None:
        assert self._page is not None
        for message in self._kept:
            self._page.send(message)
        self.holds, self._last = False, b"none"


LAST = 800
AT_ONCE = f"seq 1 {LAST} | cat"  # in one write, and no more than a terminal takes at once


def print_and_hold(watched: Watched, server: RunningServer, line: str = AT_ONCE) -> HeldLines:
    """Let a shell print numbers: the last ones are on the screen, and most of those above it still to come."""
    page = watched.page
    held = HeldLines(page, LAST)
    page.goto(link(server))
    until(watched, lambda text: "$" in text, "the prompt")
    page.locator(".single .emulator").click()
    page.keyboard.type("\n")  # the session takes the window's size
    until(watched, lambda text: text.count("$") == 2, "another prompt")
    page.keyboard.type(f"{line}\n")
    until(watched, lambda text: held.holds or f"\n{LAST}\n$" in text, "the numbers")
    wait_until(lambda: page.evaluate(TOPS, 2)[1].isdigit(), "the sight of them")
    return held


def let_come(page: Page, held: HeldLines) -> None:
    page.evaluate(TOPS, 2)
    held.let_go()
    wait_until(lambda: page.evaluate(TOGETHER) == LAST, "all lines")


PAGES = 12  # fewer lines than those have come


def test_a_page_back_is_one_also_where_fewer_lines_have_come(server: RunningServer, browser: Browser) -> None:
    make(server, "long", "bash --norc", rows=24, cols=80)
    with open_page(browser) as watched:
        page = watched.page
        held = print_and_hold(watched, server)
        at_end, rows = int(first_row(page)), page.evaluate("wshSize().rows")
        for _ in range(PAGES):
            page.keyboard.press("Shift+PageUp")
        let_come(page, held)
        back = str(at_end - PAGES * (rows - 1))
        wait_until(lambda: first_row(page) == back, f"{back}, from {at_end}", seen=lambda: first_row(page))
        tops: list[str] = page.evaluate(TOPS, 30)
        assert set(tops) == {back}, (at_end, rows, tops)


@pytest.mark.parametrize("step_before", [False, True], ids=["at once", "after a step"])
def test_the_way_to_the_first_line_is_gone_while_lines_are_still_to_come(
    server: RunningServer, browser: Browser, step_before: bool
) -> None:
    make(server, "long", "bash --norc", rows=24, cols=80)
    with open_page(browser) as watched:
        page = watched.page
        held = print_and_hold(watched, server)
        if step_before:
            page.keyboard.press("Shift+PageUp")
        page.keyboard.press("Shift+Home")
        let_come(page, held)
        wait_until(lambda: first_row(page) == "$", "the first line", seen=lambda: first_row(page))
        tops: list[str] = page.evaluate(TOPS, 30)
        assert set(tops) == {"$"}, tops


def test_what_is_selected_while_lines_are_still_to_come_stays_selected(server: RunningServer, browser: Browser) -> None:
    make(server, "long", "bash --norc", rows=24, cols=80)
    with open_page(browser, permissions=CLIPBOARD) as watched:
        page = watched.page
        held = print_and_hold(watched, server)
        page.keyboard.press("Shift+Home")
        click_row(page, 5, 3)
        wait_for_text(lambda: clip(page), lambda text: text == "4", "what is selected")
        page.evaluate("navigator.clipboard.writeText('before')")
        let_come(page, held)
        assert len(set(page.evaluate(TOPS, 30))) == 1
        page.keyboard.press("Control+C")
        wait_for_text(lambda: clip(page), lambda text: text == "4", "the same")


def test_who_goes_back_to_the_end_is_not_taken_to_the_first_line_when_it_comes(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "long", "bash --norc", rows=24, cols=80)
    with open_page(browser) as watched:
        page = watched.page
        held = print_and_hold(watched, server)
        page.keyboard.press("Shift+Home")
        page.keyboard.press("Shift+End")
        let_come(page, held)
        until(watched, lambda text: f"\n{LAST}\n$" in text, "the prompt again")
        tops: list[str] = page.evaluate(TOPS, 30)
        assert set(tops) == {str(LAST + 2 - page.evaluate("wshSize().rows"))}, tops


def test_a_command_is_shown_where_it_stands_while_lines_are_still_to_come(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "long", rows=24, cols=80)
    with open_page(browser) as watched:
        page = watched.page
        held = print_and_hold(watched, server, f"echo mi''ne; {AT_ONCE}")
        command = page.locator(".timeline li", has_text=f"seq 1 {LAST}")
        command.locator("summary").click()
        command.get_by_role("button", name="Show in terminal").click()
        let_come(page, held)
        expect(page.locator(".single .xterm-rows")).to_contain_text("mine")
        tops: list[str] = page.evaluate(TOPS, 30)
        assert len(set(tops)) == 1, tops
        expect(page.locator(".single .xterm-rows")).to_contain_text("mine")
