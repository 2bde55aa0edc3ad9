"""Every key has one owner: keys go where the cursor blinks from the first moment, also on a slow machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import Watched, open_page
from tests.web.test_page import link, make, until

SEARCH = "Search terminals, transcripts and code"


@contextmanager
def slow_page(browser: Browser, rate: int) -> Iterator[tuple[Watched, Callable[[int], None]]]:
    """A page whose processor is `rate` times slower, until told another rate.

    The processor is slowed by work, also while nothing happens: what every key has met by then is awaited at full speed,
    and so is the page itself where its opening is not what a test is about.
    """
    with open_page(browser) as watched:
        protocol = watched.page.context.new_cdp_session(watched.page)

        def slow(times: int) -> None:
            protocol.send("Emulation.setCPUThrottlingRate", {"rate": times})

        slow(rate)
        yield watched, slow
        slow(1)


RATES = pytest.mark.parametrize("rate", [1, 4])


@RATES
def test_the_first_session_has_the_keyboard_without_a_click(server: RunningServer, browser: Browser, rate: int) -> None:
    make(server, "first")
    with slow_page(browser, rate) as (watched, slow):
        watched.page.goto(link(server))
        expect(watched.page.locator(".bar h1")).to_have_text("first")
        watched.page.keyboard.type("echo fo''cus\n")
        slow(1)
        until(watched, lambda t: "\nfocus" in t, "what was typed as soon as the session was there")


@RATES
def test_keys_pressed_before_the_terminal_is_there_reach_it(server: RunningServer, browser: Browser, rate: int) -> None:
    make(server, "early")
    with slow_page(browser, rate) as (watched, slow):
        watched.page.goto(link(server), wait_until="commit")
        expect(watched.page.locator(".sidebar")).to_be_attached()
        watched.page.keyboard.type("echo ear''ly\n")
        slow(1)
        until(watched, lambda t: "\nearly" in t, "keys of the first moment, in order")


@RATES
def test_nothing_typed_into_the_palette_reaches_the_shell(server: RunningServer, browser: Browser, rate: int) -> None:
    for name in ("one", "two"):
        make(server, name, "cat")
    with slow_page(browser, 1) as (watched, slow):
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".session")).to_have_count(2)
        start = page.locator(".bar h1").inner_text()
        slow(rate)
        other = "two" if start == "one" else "one"
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("k")
        page.keyboard.type(f"go to {other}")
        page.keyboard.press("Enter")
        page.keyboard.type("mine\n")
        slow(1)
        expect(page.locator(".bar h1")).to_have_text(other)
        until(watched, lambda t: t.count("mine") == 2, "what was typed after the choice")
        for name, lines in ((start, ""), (other, "mine\nmine")):
            seen = "\n".join(server.get(f"/sessions/{name}/scrollback?format=plain")["lines"]).strip()
            assert seen == lines, f"{name} got {seen!r}"


@RATES
def test_find_and_search_keep_the_keyboard_and_alt_s_works_every_time(
    server: RunningServer, browser: Browser, rate: int
) -> None:
    make(server, "lines", "sh -c 'seq 1 50; exec cat'")
    with slow_page(browser, 1) as (watched, slow):
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "\n50" in t, "the numbers")
        slow(rate)
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("f")
        page.keyboard.type("17")
        expect(page.get_by_label("Find in this terminal")).to_have_value("17")
        page.keyboard.press("Enter")
        page.keyboard.type("9")
        expect(page.get_by_label("Find in this terminal")).to_have_value("179")
        page.keyboard.press("Escape")
        page.keyboard.type("back")
        slow(1)
        until(watched, lambda t: "back" in t, "the terminal has the keyboard again")
        slow(rate)
        for _ in range(3):
            page.keyboard.press("Alt+s")
            page.keyboard.type("needle")
            expect(page.get_by_label(SEARCH)).to_have_value("needle")
        page.locator(".place", has_text="Server").click()
        page.keyboard.press("Alt+s")
        page.keyboard.type("again")
        expect(page.get_by_label(SEARCH)).to_have_value("again")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("t")
        page.keyboard.type("-home")
        slow(1)
        until(watched, lambda t: "back-home" in t, "back in the terminal")


@RATES
def test_keys_pressed_while_another_session_opens_are_its(server: RunningServer, browser: Browser, rate: int) -> None:
    for name in ("one", "two", "three"):
        make(server, name, "cat")
    with slow_page(browser, 1) as (watched, slow):
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".session")).to_have_count(3)
        slow(rate)
        for turn in range(3):
            page.keyboard.press("Alt+ArrowDown")
            page.keyboard.type(f"t{turn}\n")
        slow(1)
        wait_until(
            lambda: (
                sorted(
                    "".join(server.get(f"/sessions/{name}/scrollback?format=plain")["lines"])
                    for name in ("one", "two", "three")
                )
                == ["t0t0", "t1t1", "t2t2"]
            ),
            "each session its own keys",
            seen=lambda: [
                server.get(f"/sessions/{n}/scrollback?format=plain")["lines"] for n in ("one", "two", "three")
            ],
        )


@pytest.mark.parametrize("delay", [0, 30, 80])
@pytest.mark.parametrize("begin", [("Alt+n",), ("Control+Backslash", "|")], ids=["new", "split"])
def test_keys_pressed_while_a_new_session_opens_are_its(
    server: RunningServer, browser: Browser, begin: tuple[str, ...], delay: int
) -> None:
    make(server, "old", "cat")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("old")
        for key in (*begin, "Enter"):
            page.keyboard.press(key)
        page.keyboard.type("echo abcdef''ghijklmnop80\n", delay=delay)
        until(watched, lambda t: "\nabcdefghijklmnop80" in t, "every key, in order")
        assert "".join(server.get("/sessions/old/scrollback?format=plain")["lines"]).strip() == ""


def test_a_session_that_cannot_be_made_brings_the_dialog_back(server: RunningServer, browser: Browser) -> None:
    make(server, "old", "cat")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("old")
        page.keyboard.press("Alt+n")
        page.get_by_label("Working directory").fill("/there/is/no/such")
        page.get_by_label("Tags").fill("one two")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
        expect(page.get_by_label("Working directory")).to_have_value("/there/is/no/such")
        expect(page.get_by_label("Tags")).to_have_value("one two")
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
        page.keyboard.type("here\n")
        until(watched, lambda t: t.count("here") == 2, "the keyboard is in the terminal again")


def test_the_palette_stays_where_nothing_matches_and_renames_and_tags(server: RunningServer, browser: Browser) -> None:
    make(server, "plain", "cat")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("plain")
        palette = page.get_by_role("dialog", name="Command palette")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("k")
        page.keyboard.type("zqzqzq")
        expect(palette).to_contain_text("Nothing matches")
        page.keyboard.press("Enter")
        page.keyboard.type("more")
        expect(palette.get_by_label("Command", exact=True)).to_have_value("zqzqzqmore")
        page.keyboard.press("Escape")
        for typed, label, words in (
            ("rename plain", "New name", "better"),
            ("tags of", "Tags, separated by blanks", "red blue"),
        ):
            page.keyboard.press("Control+Backslash")
            page.keyboard.press("k")
            page.keyboard.type(typed)
            expect(palette.get_by_role("option").first).to_contain_text(typed, ignore_case=True)
            page.keyboard.press("Enter")
            expect(page.get_by_label(label)).to_be_focused()
            page.keyboard.type(words)
            page.keyboard.press("Enter")
            expect(page.locator(".session")).to_contain_text(words.split()[0])
            expect(page.locator(".bar h1")).to_have_text("better")
            expect(page.locator(".single .xterm-helper-textarea")).to_be_focused()
        assert server.get("/sessions/better")["tags"] == ["blue", "red"]
        assert "".join(server.get("/sessions/better/scrollback?format=plain")["lines"]).strip() == ""


def test_ctrl_k_is_readlines_and_the_leader_can_be_another_key(server: RunningServer, browser: Browser) -> None:
    make(server, "line", "bash --norc")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        page.keyboard.type("echo kept removed")
        until(watched, lambda t: "removed" in t, "the line")
        for _ in range(len(" removed")):
            page.keyboard.press("ArrowLeft")
        page.keyboard.press("Control+k")
        page.keyboard.press("Enter")
        text = until(watched, lambda t: "\nkept" in t, "the line without its end")
        assert "\nkept removed" not in text
        expect(page.locator("dialog")).to_have_count(0)
        page.keyboard.press("Control+Backslash")
        expect(page.locator(".hint")).to_contain_text("Command palette")
        page.keyboard.press("?")
        sheet = page.get_by_role("dialog", name="Keys")
        expect(sheet).to_contain_text("Ctrl+Shift+C")
        sheet.get_by_label("Leader").focus()
        page.keyboard.press("Control+b")
        expect(sheet.get_by_label("Leader")).to_have_value("Ctrl+B")
        page.keyboard.press("Escape")
        expect(sheet).to_have_count(0)
        page.keyboard.press("Control+b")
        page.keyboard.press("k")
        expect(page.get_by_role("dialog", name="Command palette")).to_be_visible()
        page.keyboard.press("Escape")
        page.reload()
        expect(page.locator(".sidebar .quiet")).to_have_text("Ctrl+B K")


def test_the_palette_finds_by_a_few_letters_sessions_commands_and_settings(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "build-main")
    make(server, "other")
    assert (
        server.request("POST", "/sessions/build-main/run", {"input": "echo earlier", "max_wait_ms": 60_000}).status
        == 200
    )
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        page.locator(".session", has_text="build-main").click()
        palette = page.get_by_role("dialog", name="Command palette")
        for typed, first in (
            ("bldmn", "Go to build-main"),
            ("thlight", "Theme: light"),
            ("run earlier", "Run echo earlier"),
        ):
            page.keyboard.press("Control+Backslash")
            page.keyboard.press("k")
            expect(palette).to_be_visible()
            page.keyboard.type(typed)
            expect(palette.get_by_role("option").first).to_have_text(re.compile(re.escape(first)))
            page.keyboard.press("Escape")
            expect(palette).to_have_count(0)


# The browser tells that a dialog was closed in a task of its own, which keys may overtake: here they always do.
LATE_CLOSE = """
const close = HTMLDialogElement.prototype.close;
HTMLDialogElement.prototype.close = function () {
  close.call(this);
  setTimeout(() => { this.dispatchEvent(new Event('close')); window.toldClosed = true; }, 500);
};
"""


def test_the_palette_stays_that_is_opened_right_after_a_rename(server: RunningServer, browser: Browser) -> None:
    make(server, "plain", "cat")
    with open_page(browser) as watched:
        page = watched.page
        page.add_init_script(LATE_CLOSE)
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("plain")
        palette = page.get_by_role("dialog", name="Command palette")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("k")
        page.keyboard.type("rename plain")
        expect(palette.get_by_role("option").first).to_contain_text("Rename plain")
        page.keyboard.press("Enter")
        page.get_by_label("New name").wait_for()
        page.keyboard.type("better\n")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("k")
        page.keyboard.type("the")
        expect(page.locator(".bar h1")).to_have_text("better")
        wait_until(lambda: page.evaluate("window.toldClosed === true"), "the late news")
        page.keyboard.type("me")
        expect(palette.get_by_label("Command", exact=True)).to_have_value("theme")
        page.keyboard.press("Escape")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("k")
        page.keyboard.type("again")
        expect(palette.get_by_label("Command", exact=True)).to_have_value("again")
        assert "".join(server.get("/sessions/better/scrollback?format=plain")["lines"]).strip() == ""


# Keys overtake what the page does when a click is over: here they always do.
LATE_TIMERS = """
const wait = window.setTimeout;
window.setTimeout = (work, ms, ...rest) => wait(work, ms || 500, ...rest);
"""


def test_keys_right_after_a_click_on_a_commands_output_are_the_terminals(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "history")
    assert server.request("POST", "/sessions/history/run", {"input": "echo o''ne", "max_wait_ms": 60_000}).status == 200
    with open_page(browser) as watched:
        page = watched.page
        page.add_init_script(LATE_TIMERS)
        page.goto(link(server))
        command = page.locator(".timeline li", has_text="echo")
        command.locator("summary").click()
        output = command.locator(".output")
        expect(output).to_have_text("one")
        for turn, clicks in enumerate((1, 2, 1)):  # two select a word, and one more lets go of it
            output.click(position={"x": 12, "y": 12}, click_count=clicks)
            if clicks == 1:
                page.keyboard.type(f"?here{turn}, too ")
                until(watched, lambda t, turn=turn: f"?here{turn}, too" in t, "all keys")  # type: ignore[misc]
            else:
                assert page.evaluate("getSelection().toString()").strip() == "one"
                page.keyboard.press("ArrowLeft")
                expect(output).to_be_focused()
        expect(page.locator("dialog")).to_have_count(0)
