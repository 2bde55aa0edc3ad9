"""Who reads earlier lines is not disturbed by what is printed meanwhile, and sees how to get back to it."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page, own_page
from tests.web.test_find import first_row
from tests.web.test_page import link, make, until
from wsh.wire.system.place import Places


def test_new_output_leaves_what_one_reads_and_is_counted(server: RunningServer, browser: Browser) -> None:
    make(server, "flood", "bash --norc", rows=24, cols=80)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        page.keyboard.type("seq 1 300\n")
        until(watched, lambda text: "\n300\n" in text, "the numbers")
        to_end = page.get_by_role("button", name="To the end")
        expect(to_end).to_have_count(0)
        for _ in range(2):
            seen = first_row(page)
            page.keyboard.press("Shift+PageUp")
            wait_until(lambda seen=seen: first_row(page) != seen, "a page back")  # type: ignore[misc]
        expect(to_end).to_be_visible()
        expect(to_end).not_to_contain_text("new line")
        before = first_row(page)
        assert int(before) < 290

        def printed(data: bytes, count: int) -> None:
            assert server.request("POST", "/sessions/flood/input", data).status == 204
            expect(to_end).to_contain_text(f"{count:,} new lines")
            assert first_row(page) == before

        printed(b"echo; echo\r", 3)
        # More than a frame takes: lines are left out, and fetched because somebody looks back.
        printed(b"seq 1 6000\r", 6004)
        wait_until(lambda: re.search(r"\n299\n300\n", watched.text()) is not None, "all lines between")
        assert first_row(page) == before
        to_end.click()
        expect(to_end).to_have_count(0)
        expect(page.locator(".single .xterm-rows")).to_contain_text("6000")
        page.keyboard.type("echo mi''ne\n")
        until(watched, lambda text: "\nmine" in text, "the keyboard is in the terminal")


def test_a_rename_and_a_look_elsewhere_keep_the_place(server: RunningServer, browser: Browser) -> None:
    make(server, "long", "sh -c 'seq 1 6000; exec cat'", rows=24, cols=80)
    make(server, "other", "cat")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "\n6000\n" in text, "the numbers")
        for far in (1, 2):
            if far == 2:  # before the lines that come with the first picture
                page.keyboard.press("Shift+Home")
                wait_until(lambda: first_row(page) == "1", "the first line")
            page.keyboard.press("Shift+PageUp" if far == 1 else "Shift+PageDown")
            to_end = page.get_by_role("button", name="To the end")
            expect(to_end).to_be_visible()
            wait_until(lambda: first_row(page) not in ("1", "5978"), "another place")
            before = first_row(page)
            page.locator(".session", has_text="other").click()
            expect(page.locator(".bar h1")).to_have_text("other")
            page.locator(".sessions .session").first.click()
            wait_until(lambda before=before: first_row(page) == before, "the same place", seen=lambda: first_row(page))  # type: ignore[misc]
            assert server.request("PATCH", f"/sessions/{'long' * far}", {"name": "long" * (far + 1)}).status == 200
            expect(page.locator(".bar h1")).to_have_text("long" * (far + 1))
            wait_until(lambda before=before: first_row(page) == before, "the same place", seen=lambda: first_row(page))  # type: ignore[misc]


def test_a_restart_of_the_server_keeps_the_place(places: Places, browser: Browser) -> None:
    server = start_server(places)
    with own_page(browser) as watched:
        make(server, "long", "sh -c 'seq 1 6000; exec cat'", rows=24, cols=80)
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "\n6000\n" in text, "the numbers")
        page.keyboard.press("Shift+Home")
        wait_until(lambda: first_row(page) == "1", "the first line")
        page.keyboard.press("Shift+PageDown")
        wait_until(lambda: first_row(page) != "1", "a later place")
        before = first_row(page)
        server.process.kill()
        server.process.wait()
        lost = page.locator(".banner, .lost")
        expect(lost.first).to_be_visible()
        with running_server(places, bind=f"127.0.0.1:{server.port}") as again:
            expect(lost).to_have_count(0)
            wait_until(lambda: first_row(page) == before, "the same place", seen=lambda: first_row(page))
            assert again.request("POST", "/sessions/long/input", b"more\r").status == 204
            expect(page.get_by_role("button", name="To the end")).to_contain_text("2 new lines")
            assert first_row(page) == before


def test_find_says_that_earlier_lines_are_no_longer_kept(server: RunningServer, browser: Browser) -> None:
    make(server, "all", "sh -c 'seq 1 500; exec cat'")
    make(server, "cut", "sh -c 'seq 1 30000; exec cat'")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        for name, last, is_cut in (("all", 500, False), ("cut", 30_000, True)):
            page.locator(".session", has_text=name).click()
            until(watched, lambda text, last=last: f"\n{last}\n" in text, "the last line")  # type: ignore[misc]
            page.keyboard.press("Control+Backslash")
            page.keyboard.press("f")
            page.get_by_label("Find in this terminal").fill(str(last))
            expect(page.locator(".find .told")).to_have_text("1 of 1")
            expect(page.locator(".find").get_by_text("no longer kept")).to_have_count(int(is_cut))
            page.keyboard.press("Escape")
