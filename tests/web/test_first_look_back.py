"""The first step back after long output goes as far as any other: the lines that are fetched for it move nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import Watched, open_page
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
        for _ in range(30):
            page.evaluate("() => new Promise(requestAnimationFrame)")
            top = first_row(page)
            assert top.isdigit() and at_end - 100 <= int(top) < at_end, (at_end, top)
