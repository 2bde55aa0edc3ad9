"""The replay as a person uses it: from its end, by command, without silences, by keys, and out of the page."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from playwright.sync_api import Browser, Page, Route, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import open_page
from tests.web.test_page import link, make, until


def at(page: Page) -> float:
    return float(page.get_by_label("Time").input_value())


def open_replay(page: Page) -> None:
    page.keyboard.press("Control+Backslash")
    page.keyboard.press("r")
    expect(page.get_by_label("Time")).not_to_have_attribute("max", "0")


def test_it_opens_at_the_end_and_steps_by_command(server: RunningServer, browser: Browser) -> None:
    make(server, "steps")
    for line in ("sleep 0.1; echo one", "sleep 0.1; false", "sleep 0.1; echo three"):  # ticks lie apart
        assert server.request("POST", "/sessions/steps/run", {"input": line, "max_wait_ms": 60_000}).status == 200
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "\nthree" in t, "the commands")
        open_replay(page)
        length = float(str(page.get_by_label("Time").get_attribute("max")))
        assert at(page) == length, "it opens at the end"
        expect(page.locator(".film .xterm-rows")).to_contain_text("three")
        ticks = page.locator(".ticks button")
        expect(ticks).to_have_count(3)
        expect(ticks.nth(1)).to_have_class("bad")
        places: list[float] = []
        for _ in range(3):
            page.keyboard.press("p")
            wait_until(lambda: at(page) < (places[-1] if places else length), "a step back", seen=lambda: at(page))
            places.append(at(page))
        page.keyboard.press("n")
        wait_until(lambda: at(page) == places[1], "a step on", seen=lambda: at(page))
        ticks.nth(0).click()
        wait_until(
            lambda: at(page) == places[2],
            "a click on a tick",
            seen=lambda: (at(page), places, ticks.evaluate_all("a => a.map(e => e.title + e.style.left)")),
        )
        page.keyboard.press("End")
        wait_until(lambda: at(page) == length, "the end")
        page.keyboard.press("Escape")
        expect(page.locator(".single")).to_be_visible()


def test_space_plays_over_a_silence_and_the_film_can_be_saved(
    server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    make(server, "silent", "sh -c 'echo before; sleep 3; echo after; exec cat'")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "after" in t, "the film")
        open_replay(page)
        length = float(str(page.get_by_label("Time").get_attribute("max")))
        page.keyboard.press("Home")
        wait_until(lambda: at(page) == 0, "the start")
        page.evaluate(
            """() => { window.seen = []; const field = document.querySelector('.track input');
              const look = () => { window.seen.push(Number(field.value)); requestAnimationFrame(look); }; look(); }"""
        )
        page.keyboard.press("Space")
        wait_until(lambda: at(page) == length, "the end", seen=lambda: at(page))
        seen = page.evaluate("window.seen")
        assert max(b - a for a, b in pairwise(seen)) > 1.5, "the silence was jumped over"
        expect(page.locator(".film .xterm-rows")).to_contain_text("after")
        page.locator(".replay .menu summary").click()
        with page.expect_download() as coming:
            page.get_by_role("button", name="asciicast").click()
        file = tmp_path / coming.value.suggested_filename
        coming.value.save_as(file)
        assert file.name == "silent.cast"
        head = json.loads(file.read_text().splitlines()[0])
        assert head["version"] == 2


def test_keys_that_are_pressed_before_the_film_is_there_count_and_it_is_saved_from_the_scrubber_on(
    server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    make(server, "early")
    for line in ("echo first; clear", "sleep 0.1; echo second", "sleep 0.1; echo third"):
        assert server.request("POST", "/sessions/early/run", {"input": line, "max_wait_ms": 60_000}).status == 200
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "\nthird" in t, "the commands")
        held: list[Route] = []
        page.route("**/recording?*", lambda route: held.append(route))
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("r")
        wait_until(lambda: page.evaluate("document.activeElement.className") == "replay" and held, "the request")
        for key in ("p", "p", "p", "n"):
            page.keyboard.press(key)
        held[0].continue_()
        page.unroute("**/recording?*")
        expect(page.get_by_label("Time")).not_to_have_attribute("max", "0")
        marks = page.locator(".ticks button").evaluate_all("all => all.map(e => parseFloat(e.style.left))")
        length = float(str(page.get_by_label("Time").get_attribute("max")))
        wait_until(
            lambda: abs(at(page) - marks[1] * length / 100) < 0.02, "three back, one on", seen=lambda: (at(page), marks)
        )
        page.get_by_text("Export").click()
        page.get_by_label("From here").check()
        with page.expect_download() as download:
            page.get_by_role("button", name="asciicast").click()
        path = tmp_path / "later.cast"
        download.value.save_as(path)
        text = "".join(json.loads(line)[2] for line in path.read_text().splitlines()[1:])
        assert "third" in text and "first" not in text.replace("echo first", "")


def test_keys_that_come_faster_than_pictures_count_each(server: RunningServer, browser: Browser) -> None:
    make(server, "quick")
    for word in ("first", "second", "third"):
        line = {"input": f"sleep 0.1; echo {word}", "max_wait_ms": 60_000}
        assert server.request("POST", "/sessions/quick/run", line).status == 200
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "\nthird" in t, "the commands")
        open_replay(page)
        page.evaluate(
            """for (const key of "ppp+n")
              document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}))"""
        )
        length = float(str(page.get_by_label("Time").get_attribute("max")))
        marks = page.locator(".ticks button").evaluate_all("all => all.map(e => parseFloat(e.style.left))")
        wait_until(lambda: at(page) < length, "the keys")
        assert abs(at(page) - marks[1] * length / 100) < 0.02, (at(page), marks)
        expect(page.get_by_label("Speed")).to_have_value("2")


def test_the_menu_of_exports_is_used_by_keys_alone(server: RunningServer, browser: Browser) -> None:
    make(server, "keys", "sh -c 'echo one; exec cat'")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "one" in t, "the film")
        open_replay(page)
        menu = page.locator(".replay .menu")
        menu.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(menu).to_have_attribute("open", "")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        expect(page.get_by_label("From here")).to_be_checked()
        expect(page.get_by_role("button", name="Play")).to_be_visible()
        page.keyboard.press("Escape")
        expect(menu).not_to_have_attribute("open", "")
        expect(page.locator(".replay")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".single")).to_be_visible()
