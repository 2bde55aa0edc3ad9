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


def test_the_field_of_a_phone_keeps_the_keyboard_and_ctrl_counts_there(server: RunningServer, browser: Browser) -> None:
    make(server, "thumb", "bash --norc", rows=20, cols=40)
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        field = page.get_by_label("A line to send")
        field.tap()
        page.keyboard.type("echo a ")
        page.get_by_role("button", name="|", exact=True).tap()
        expect(field).to_have_value("echo a |")
        page.keyboard.type(" tr a $((40+2))")
        page.get_by_role("button", name="Send").tap()
        until(watched, lambda t: "\n4\n" in t, "what the line printed")
        expect(field).to_be_focused()
        page.keyboard.type("cd /us")
        page.get_by_role("button", name="tab", exact=True).tap()
        until(watched, lambda t: "cd /usr/" in t, "the completion")
        expect(field).to_have_value("")
        expect(field).to_be_focused()
        page.get_by_role("button", name="ctrl", exact=True).tap()
        page.keyboard.type("u")
        until(watched, lambda t: "cd /usr/" not in t.splitlines()[-1] and t.rstrip().endswith("$"), "Ctrl+U")
        expect(field).to_have_value("")
        page.keyboard.type("sleep 1000")
        page.keyboard.press("Enter")
        wait_until(lambda: server.get("/sessions/thumb")["state"] == "running", "the command")
        page.get_by_role("button", name="ctrl", exact=True).tap()
        page.keyboard.type("c")
        wait_until(lambda: server.get("/sessions/thumb")["state"] == "idle", "Ctrl+C")
        page.keyboard.type("after")
        expect(field).to_have_value("after")


def test_what_lies_over_a_phones_terminal_is_closed_by_the_way_back(server: RunningServer, browser: Browser) -> None:
    make(server, "pocket")
    assert server.request("POST", "/sessions/pocket/run", {"input": "seq 1 3", "max_wait_ms": 60_000}).status == 200
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto("about:blank")
        page.goto(link(server))
        until(watched, lambda t: "\n3" in t, "the numbers")
        sheet, sidebar = page.locator(".inspector"), page.locator(".sidebar")
        for leave in ("Escape", "back", "Hide"):
            page.get_by_role("button", name="Commands").tap()
            expect(sheet.locator(".timeline code")).to_have_text(["seq 1 3"])
            if leave == "Escape":
                page.keyboard.press("Escape")
            elif leave == "back":
                page.evaluate("history.back()")
            else:
                page.get_by_role("button", name="Hide").tap()
            expect(sheet).to_have_count(0)
        page.get_by_role("button", name="Sessions").first.tap()
        page.get_by_role("button", name="Search", exact=True).first.tap()
        expect(page.locator("section.search")).to_be_visible()
        page.get_by_role("button", name="Sessions").first.tap()
        expect(sidebar).to_be_in_viewport()
        page.evaluate("history.back()")
        expect(sidebar).not_to_be_in_viewport()
        expect(page.locator("section.search")).to_be_visible()
        page.evaluate("history.back()")
        expect(page.locator(".bar h1")).to_have_text("pocket")
        page.go_back()  # nothing is left to be closed
        assert page.url == "about:blank"


def test_every_place_of_a_phone_has_targets_for_thumbs_and_no_sideways_scroll(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "a-session-with-a-rather-long-name.and-dots", rows=24, cols=80)
    small: dict[str, list[str]] = {}
    with open_page(browser, **{**PHONE, "viewport": {"width": 360, "height": 640}}) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")

        def look(place: str) -> None:
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), place
            small[place] = page.evaluate(
                """() => [...document.querySelectorAll('button, summary, select, input')].filter(e => {
                  const box = e.getBoundingClientRect();
                  const seen = e.checkVisibility({visibilityProperty: true}) && box.width > 0;
                  return seen && !e.closest('.ticks, label') && e.type !== 'range'
                    && (box.height < 43.5 || box.left < -1 || box.right > innerWidth + 1);
                }).map(e => e.outerHTML.slice(0, 80))"""
            )

        def rest() -> None:
            moving = "document.querySelector('.sidebar').getAnimations().length"
            wait_until(lambda: page.evaluate(moving) == 0, "the drawer to rest")

        look("terminal")
        page.get_by_role("button", name="Sessions").first.tap()
        expect(page.locator(".sidebar")).to_be_in_viewport()
        rest()
        look("sessions")
        for name, shown in (("Grid", ".grid"), ("Queue", ".queue"), ("Search", "section.search"), ("Server", ".admin")):
            page.get_by_role("button", name=name, exact=name != "Queue").first.tap()
            expect(page.locator(shown)).to_be_visible()
            rest()
            look(name)
            page.get_by_role("button", name="Sessions").first.tap()
            rest()
        page.locator(".session").first.tap()
        for name in ("Replay", "Find…"):
            page.locator(".menu summary").tap()
            look("menu")
            page.get_by_role("button", name=name).tap()
            expect(page.locator(".replay .scrubber select" if name == "Replay" else ".find")).to_be_visible()
            look(name)
            if name == "Replay":
                page.get_by_role("button", name="Back to the terminal").tap()
        assert not any(small.values()), small
