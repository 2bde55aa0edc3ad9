"""A finger on a phone's terminal: through earlier lines, in full-screen programs, and what Find shows above the keyboard."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page
from tests.web.test_page import link, make, until
from tests.web.test_phone import PHONE
from tests.web.test_touch import FIRST_ROW, turn

MARKED = """() => {
  const mark = document.querySelector('.found.now')?.getBoundingClientRect();
  const bar = document.querySelector('.find').getBoundingClientRect();
  const room = document.querySelector('.single .emulator').getBoundingClientRect();
  return !!mark && mark.top >= bar.bottom - 1 && mark.bottom <= room.bottom + 1 && mark.left >= room.left - 1 && mark.left < room.right;
}"""


# A drag without a pause between its steps, however slow the machine is.
THROW = """by => {
  const room = document.querySelector('.single .emulator');
  const box = room.getBoundingClientRect();
  const tell = (kind, y) => {
    const touch = new Touch({identifier: 1, target: room, clientX: box.left + 50, clientY: y});
    const touches = kind === 'touchend' ? [] : [touch];
    room.dispatchEvent(new TouchEvent(kind, {touches, changedTouches: [touch], bubbles: true, cancelable: true}));
  };
  const from = box.top + 50;
  tell('touchstart', from);
  for (let step = 1; step <= 10; step++) tell('touchmove', from + by * step / 10);
  tell('touchend', from + by);
}"""


def drag(page: Page, by: int, *, steps: int = 10) -> None:
    """One finger, from the middle of the terminal, by so many pixels down (or up), and away while it moves."""
    box = page.locator(".single .emulator").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    protocol = page.context.new_cdp_session(page)
    points = [y + by * step / steps for step in range(steps + 1)]
    protocol.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": points[0]}]})
    for _, point in pairwise(points):
        protocol.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": point}]})
    protocol.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    protocol.detach()


def test_a_finger_scrolls_and_what_it_threw_glides_on_until_it_is_touched(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "numbers", "sh -c 'seq 1 3000; exec cat'", rows=30, cols=40)
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "\n3000" in text, "the numbers")
        wait_until(lambda: page.evaluate(FIRST_ROW) > 2900, "the end to be shown")
        end = page.evaluate(FIRST_ROW)
        height = page.locator(".single .xterm-rows > div").first.evaluate("e => e.getBoundingClientRect().height")
        page.evaluate(THROW, 200)
        dragged = 200 / height
        wait_until(lambda: end - page.evaluate(FIRST_ROW) > dragged + 2, "more lines than the finger moved")
        seen = [-1, -2]

        def rests() -> bool:
            seen.append(page.evaluate(FIRST_ROW))
            page.wait_for_timeout(150)
            return bool(seen[-1] == page.evaluate(FIRST_ROW))

        wait_until(rests, "its rest", seen=lambda: seen)
        expect(page.get_by_role("button", name="To the end")).to_be_visible()
        page.evaluate(THROW, 40)
        page.locator(".single .emulator").dispatch_event("touchstart", {"touches": []})
        # What moved before the touch is drawn in the next frame.
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        held = page.evaluate(FIRST_ROW)
        page.wait_for_timeout(150)
        assert page.evaluate(FIRST_ROW) == held, "a touch stops it"


# A finger that is held until a word is selected, and then goes on by so many cells and rows.
HOLD = """async ([col, row, cols, rows]) => {
  const room = document.querySelector('.single .emulator');
  const box = room.querySelector('.xterm-screen').getBoundingClientRect();
  const {cols: width, rows: height} = window.wshSize();
  const tell = (kind, col, row) => {
    const touch = new Touch({identifier: 1, target: room, clientX: box.left + (col + .5) * box.width / width, clientY: box.top + (row + .5) * box.height / height});
    room.dispatchEvent(new TouchEvent(kind, {touches: kind === 'touchend' ? [] : [touch], changedTouches: [touch], bubbles: true, cancelable: true}));
  };
  tell('touchstart', col, row);
  await new Promise(done => setTimeout(done, 900));
  tell('touchmove', col + cols, row + rows);
  tell('touchend', col + cols, row + rows);
}"""


def test_a_word_that_is_held_is_selected_and_copied(server: RunningServer, browser: Browser) -> None:
    make(server, "words", "sh -c 'echo one src/app.py three; echo second line; exec cat'", rows=24, cols=40)
    with open_page(browser, permissions=["clipboard-read", "clipboard-write"], **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "second line" in text, "the words")
        bar = page.get_by_role("toolbar", name="Selection")
        for at, cols, rows, text in (
            (6, 0, 0, "src/app.py"),
            (6, -4, 1, "src/app.py three\nsec"),
            (14, 0, 0, "src/app.py"),  # the space behind it, which no finger tells from it
            (6, -6, 0, "one src/app.py"),
        ):
            page.evaluate(HOLD, [at, 0, cols, rows])
            expect(page.locator(".handle")).to_have_count(2)
            bar.get_by_role("button", name="Copy").tap()
            expect(bar).to_have_count(0)
            assert page.evaluate("navigator.clipboard.readText()") == text
        page.evaluate(HOLD, [20, 10, 0, 0])  # nothing is there: what was copied is pasted
        expect(bar.get_by_role("button", name="Copy")).to_be_disabled()
        bar.get_by_role("button", name="Paste").tap()
        until(watched, lambda text: text.count("one src/app.py") == 2, "the paste")
        page.evaluate(HOLD, [6, 0, 0, 0])
        page.touchscreen.tap(200, 300)
        expect(bar).to_have_count(0)
        expect(page.locator(".handle")).to_have_count(0)


@pytest.mark.parametrize("mouse", [False, True])
def test_a_finger_turns_the_wheel_of_a_full_screen_program(
    server: RunningServer, browser: Browser, mouse: bool
) -> None:
    modes = "\\033[?1049h" + ("\\033[?1000h\\033[?1006h" if mouse else "")
    make(server, "full", f"sh -c 'stty -icanon -echo; printf \"{modes}ready \"; exec cat -v'", rows=30, cols=40)
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "ready" in text, "the program")
        up, down = (r"\^\[\[<64;\d+;\d+M", r"\^\[\[<65;\d+;\d+M") if mouse else (r"\^\[\[A", r"\^\[\[B")
        drag(page, 120)
        until(watched, lambda text: len(re.findall(up, text.replace("\n", ""))) >= 3, "turns up")
        assert not re.search(down, watched.text().replace("\n", ""))
        drag(page, -120)
        until(watched, lambda text: len(re.findall(down, text.replace("\n", ""))) >= 3, "turns down")


def test_what_find_shows_is_neither_below_its_bar_nor_behind_the_keyboard(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "tall", "sh -c 'seq -f line-%g 1 60; exec cat'", rows=60, cols=120)
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "line-60" in text, "the lines")
        page.locator(".menu summary").tap()
        page.get_by_role("button", name="Find…").tap()
        turn(watched, 390, 500)  # the keyboard comes up
        for word in ("line-60", "line-2", "line-1", "line-33"):
            page.get_by_label("Find in this terminal").fill(word)
            if word != "line-60":
                page.get_by_role("button", name="Newer match").tap()  # around, to the first one
            wait_until(lambda: page.evaluate(MARKED), f"{word} in sight")


def test_the_keyboard_of_a_phone_leaves_most_of_the_rest_to_the_terminal(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "work", rows=24, cols=80)
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        expect(page.locator(".single > .bar")).to_be_visible()
        turn(watched, 390, 480)
        expect(page.locator(".single > .bar")).not_to_be_visible()
        assert page.locator(".single .emulator").evaluate("e => e.clientHeight") > 480 * 0.75
        keys = page.get_by_role("toolbar", name="Keys")
        for key in ("esc", "tab", "ctrl", "Ctrl+C", "ArrowLeft", "ArrowUp", "ArrowDown", "ArrowRight"):
            expect(keys.get_by_role("button", name=key, exact=True)).to_be_in_viewport(ratio=1)
        turn(watched, 390, 844)
        expect(page.locator(".single > .bar")).to_be_visible()
