"""Looking never changes: the page shows a session in its own size, whatever the window's, and follows its cursor."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import Watched, open_page
from tests.web.test_page import link, make, until

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def size(server: RunningServer, name: str) -> tuple[int, int]:
    info = server.get(f"/sessions/{name}")
    return info["rows"], info["cols"]


def make_by_agent(server: RunningServer, name: str, **more: object) -> None:
    body = {"name": name, "command": "bash --norc", "env": {"PS1": "$ "}, **more}
    assert server.request("POST", "/sessions", body, headers={"wsh-role": "agent"}).status == 201


def shown(page: Page) -> tuple[int, int]:
    """Rows and columns of the emulator in front."""
    found = page.evaluate("window.wshSize()")
    return found["rows"], found["cols"]


def cursor_is_in_sight(page: Page) -> bool:
    return bool(
        page.evaluate(
            """() => {
              const cursor = document.querySelector('.single .xterm-cursor')?.getBoundingClientRect();
              const room = document.querySelector('.single .emulator').getBoundingClientRect();
              return !!cursor && cursor.left >= room.left - 1 && cursor.right <= room.right + 1
                && cursor.top >= room.top - 1 && cursor.bottom <= room.bottom + 1;
            }"""
        )
    )


def ready(watched: Watched) -> None:
    until(watched, lambda t: "$" in t, "the prompt")
    expect(watched.page.locator(".single .fit")).to_be_visible()


def test_opening_a_session_in_a_window_or_on_a_phone_leaves_its_size(server: RunningServer, browser: Browser) -> None:
    make(server, "wide", rows=50, cols=200)
    with open_page(browser) as desk, open_page(browser, **PHONE) as phone:
        for watched in (desk, phone):
            watched.page.goto(link(server))
            ready(watched)
            assert shown(watched.page) == (50, 200)
            expect(watched.page.locator(".single .fit")).to_contain_text("200×50")
            watched.page.set_viewport_size({"width": 700, "height": 500})
            expect(watched.page.locator(".single .fit")).to_contain_text("200×50")
        assert size(server, "wide") == (50, 200)
        desk.page.keyboard.type("x")
        wait_until(lambda: size(server, "wide") != (50, 200), "typing takes the window's size")
        rows, cols = size(server, "wide")
        wait_until(lambda: shown(desk.page) == (rows, cols) == shown(phone.page), "both show it")
        expect(desk.page.locator(".single .fit")).to_have_count(0)
        desk.page.set_viewport_size({"width": 900, "height": 500})
        wait_until(lambda: size(server, "wide")[1] != cols, "the window of whoever typed last is followed")


def test_an_agents_session_keeps_its_size_until_fit_is_pressed(server: RunningServer, browser: Browser) -> None:
    make_by_agent(server, "agents", rows=30, cols=120)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        ready(watched)
        page.keyboard.type("echo he''re\n")
        until(watched, lambda t: "\nhere" in t, "what was typed")
        assert size(server, "agents") == (30, 120)
        page.locator(".single .fit").click()
        wait_until(lambda: size(server, "agents") != (30, 120), "Fit")
        expect(page.locator(".single .fit")).to_have_count(0)
        page.keyboard.type("echo the''re\n")
        until(watched, lambda t: "\nthere" in t, "the keyboard stayed in the terminal")


def hangs_out(page: Page) -> bool:
    """Whether the session is wider than its room."""
    found = page.locator(".single .emulator").evaluate(
        "e => e.querySelector('.xterm-screen').getBoundingClientRect().right > e.getBoundingClientRect().right"
    )
    return bool(found)


def open_on_phone(watched: Watched, name: str) -> None:
    watched.page.get_by_role("button", name="Sessions").first.tap()
    watched.page.locator(".session", has_text=name).first.tap()
    expect(watched.page.locator(".bar h1")).to_have_text(name)
    ready(watched)


def test_eighty_columns_are_whole_on_a_phone_and_wider_ones_show_that_they_go_on(
    server: RunningServer, browser: Browser
) -> None:
    make_by_agent(server, "usual", rows=24, cols=80)
    make_by_agent(server, "wide", rows=24, cols=200)
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        open_on_phone(watched, "usual")
        wait_until(lambda: not hangs_out(page), "all columns in sight")
        expect(page.locator(".single .more-right")).to_have_count(0)
        open_on_phone(watched, "wide")
        wait_until(lambda: hangs_out(page), "a part of it")
        expect(page.locator(".single .more-right")).to_have_count(1)
    assert size(server, "usual") == (24, 80) and size(server, "wide") == (24, 200)


def test_a_session_larger_than_the_phone_is_panned_to_its_cursor(server: RunningServer, browser: Browser) -> None:
    make_by_agent(server, "large", rows=100, cols=300)
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        ready(watched)
        assert server.request("POST", "/sessions/large/input", b"seq 95\n").status == 204
        until(watched, lambda t: "\n95" in t, "the numbers")
        wait_until(lambda: cursor_is_in_sight(page), "the prompt below the numbers")
        assert server.request("POST", "/sessions/large/input", b"x" * 250).status == 204
        until(watched, lambda t: "x" * 250 in t, "a long line")
        wait_until(lambda: cursor_is_in_sight(page), "the end of the line")
        assert size(server, "large") == (100, 300)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_an_approval_that_is_announced_takes_no_rows(server: RunningServer, browser: Browser) -> None:
    make(server, "calm")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        ready(watched)
        page.keyboard.type("x")
        expect(page.locator(".single .fit")).to_have_count(0)
        before = size(server, "calm")
        height = page.locator(".single .emulator").evaluate("e => e.clientHeight")
        page.evaluate(
            "document.querySelector('.page').insertAdjacentHTML('beforeend', '<div class=notice><button class=asks>An agent asks</button></div>')"
        )
        expect(page.locator(".asks")).to_be_visible()
        assert page.locator(".single .emulator").evaluate("e => e.clientHeight") == height
        assert size(server, "calm") == before


def test_the_scrollback_has_no_seam_and_no_scrollbar_stands_in_the_middle(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "numbers", "sh -c 'seq 1 3000; exec cat'", rows=50, cols=60)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        text = until(watched, lambda t: "\n3000" in t, "the numbers")
        lines = text.rstrip().split("\n")
        assert lines == [str(n) for n in range(3001 - len(lines), 3001)] and len(lines) > 1000
        places = page.evaluate(
            """() => [...document.querySelectorAll('.single .emulator *')]
              .filter(e => e.scrollHeight > e.clientHeight && ['auto', 'scroll'].includes(getComputedStyle(e).overflowY)
                || e.matches('.scrollbar.vertical'))
              .map(e => document.querySelector('.single .emulator').getBoundingClientRect().right - e.getBoundingClientRect().right)"""
        )
        assert all(place < 20 for place in places), f"a scrollbar lies {places} px from the edge"


def test_a_session_opened_in_a_part_has_the_size_of_that_part(server: RunningServer, browser: Browser) -> None:
    make(server, "first")
    with open_page(browser, viewport={"width": 1400, "height": 800}) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        page.keyboard.type("x")
        wait_until(lambda: size(server, "first") != (24, 80), "the size of the whole stage")
        whole = size(server, "first")
        page.keyboard.press("Control+Backslash")
        page.keyboard.type("|")
        expect(page.get_by_label("Filter", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".pane")).to_have_count(2)
        wait_until(lambda: len(server.get("/sessions")) == 2, "the new session")
        new = next(one["name"] for one in server.get("/sessions") if one["name"] != "first")
        wait_until(lambda: size(server, new)[1] < whole[1] * 0.6, "its own size", seen=lambda: size(server, new))
        expect(page.locator(".pane.front .fit")).to_have_count(0)


def test_the_inspector_leaves_a_narrow_window_room_for_the_terminal(server: RunningServer, browser: Browser) -> None:
    make(server, "narrow", rows=24, cols=80)
    with open_page(browser, viewport={"width": 1000, "height": 700}) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        page.keyboard.press("Alt+i")
        expect(page.locator(".inspector")).to_be_visible()
        expect(page.locator(".sidebar")).not_to_be_in_viewport()
        room, beside = page.locator(".single .emulator").bounding_box(), page.locator(".inspector").bounding_box()
        assert room is not None and beside is not None
        assert room["x"] + room["width"] <= beside["x"] + 1, "nothing is covered"
        assert room["width"] > 2 * beside["width"], "nothing is squeezed"
        page.get_by_role("button", name="Sessions").click()
        expect(page.locator(".session")).to_be_in_viewport()
        page.locator(".session").click()
        expect(page.locator(".sidebar")).not_to_be_in_viewport()
        page.keyboard.type("echo $((40+2))\n")
        until(watched, lambda t: "\n42" in t, "the keyboard is in the terminal")


def test_parts_that_one_typed_in_follow_the_divider_and_fill_the_room_of_a_closed_one(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "left")
    make(server, "right")
    make_by_agent(server, "agents", rows=20, cols=70)
    with open_page(browser, viewport={"width": 1400, "height": 800}) as watched:
        page = watched.page
        page.goto(link(server))
        page.locator(".session", has_text="left").click()
        until(watched, lambda t: "$" in t, "the prompt")
        page.keyboard.type("x")
        wait_until(lambda: size(server, "left") != (24, 80), "the size of the whole stage")
        whole = size(server, "left")
        page.keyboard.press("Control+Backslash")
        page.keyboard.type("|")
        expect(page.get_by_label("Filter", exact=True)).to_be_focused()
        wait_until(lambda: size(server, "left")[1] < whole[1] * 0.6, "the half of it")
        half = size(server, "left")
        page.keyboard.type("right")
        page.keyboard.press("Enter")
        expect(page.locator(".pane.front h1")).to_have_text("right")
        until(watched, lambda t: "$" in t, "the prompt")
        page.keyboard.type("y")
        wait_until(lambda: abs(size(server, "right")[1] - half[1]) < 4, "the other half")
        divider = page.get_by_role("separator")
        divider.focus()
        for _ in range(3):
            page.keyboard.press("ArrowLeft")
        wait_until(lambda: size(server, "left")[1] < half[1] < size(server, "right")[1], "both to follow the divider")
        page.locator(".pane .emulator").last.click()
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("x")
        expect(page.locator(".pane")).to_have_count(0)
        wait_until(lambda: size(server, "left") == whole, "all of the room", seen=lambda: size(server, "left"))
        expect(page.locator(".single .fit")).to_have_count(0)
        page.locator(".session", has_text="agents").click()
        ready(watched)
        assert size(server, "agents") == (20, 70), "one that was only looked at keeps its size"
