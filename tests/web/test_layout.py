"""The grid fills its area, and a phone has keys that a thumb can hit and a field to compose in."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page
from tests.web.test_page import link, make, until
from tests.web.test_size import PHONE


def test_the_grid_fills_its_area_and_shows_the_tail(server: RunningServer, browser: Browser) -> None:
    for number in range(8):
        make(server, f"s{number}", "sh -c 'seq 1 60; exec cat'", rows=50, cols=120)
    with open_page(browser, viewport={"width": 1440, "height": 900}) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "\n60" in t, "the numbers")
        page.keyboard.press("Alt+g")
        expect(page.locator(".tile")).to_have_count(8)
        boxes = page.locator(".tile").evaluate_all("all => all.map(e => e.getBoundingClientRect().toJSON())")
        area = page.locator(".grid").bounding_box()
        assert area is not None
        assert len({round(box["left"]) for box in boxes}) in (3, 4)
        assert max(box["right"] for box in boxes) >= area["x"] + area["width"] - 20
        assert max(box["bottom"] for box in boxes) >= area["y"] + area["height"] - 20

        def tail_is_in_sight() -> bool:
            return bool(
                page.evaluate(
                    """() => [...document.querySelectorAll('.tile')].every(tile => {
                      const rows = [...tile.querySelectorAll('.xterm-rows > div')];
                      const last = rows.findLast(row => row.textContent.trim() === '60')?.getBoundingClientRect();
                      const room = tile.querySelector('.emulator').getBoundingClientRect();
                      return last && last.bottom <= room.bottom + 2 && last.top >= room.top - 2;
                    })"""
                )
            )

        wait_until(tail_is_in_sight, "the last line in every tile")
        assert (server.get("/sessions/s0")["rows"], server.get("/sessions/s0")["cols"]) == (50, 120)


def test_a_phone_has_large_keys_and_a_field_that_composes(server: RunningServer, browser: Browser) -> None:
    make(server, "thumb", 'sh -c \'trap "echo GOT INT" INT; echo up; while :; do read -r x && echo "line: $x"; done\'')
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "up" in t, "the program")
        keys = page.locator(".keybar button")
        sizes = keys.evaluate_all("all => all.map(e => [e.offsetWidth, e.offsetHeight])")
        assert sizes and all(width >= 44 and height >= 44 for width, height in sizes), sizes
        rows = keys.evaluate_all(
            "all => all.map(e => [e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
        )
        assert all(0 <= left < right <= 390 for left, right in rows), "none is scrolled out of sight"
        names = set(keys.evaluate_all("all => all.map(e => e.getAttribute('aria-label') || e.textContent)"))
        assert {"esc", "tab", "ctrl", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Ctrl+C"} <= names
        field = page.get_by_label("A line to send")
        field.fill("composed")
        assert "composed" not in watched.text(), "nothing goes before it is sent"
        page.get_by_role("button", name="Send").click()
        until(watched, lambda t: "line: composed" in t, "the line")
        expect(field).to_have_value("")
        page.get_by_role("button", name="Ctrl+C").click()
        until(watched, lambda t: "GOT INT" in t, "Ctrl+C")
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
