"""Commands in the terminal itself: a mark beside each, and one that is chosen is framed, copied, run again and left."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import HeldSight, open_page, wait_for_news
from tests.web.test_page import link, make, until

# What the rows with a mark begin with after the prompt, and the mark's state.
MARKED = """() => [...document.querySelectorAll('.single .gutter-mark')].map(mark => {
  const middle = mark.getBoundingClientRect().top + mark.getBoundingClientRect().height / 2;
  const row = [...document.querySelectorAll('.single .xterm-rows > div')].find(one => {
    const box = one.getBoundingClientRect();
    return box.top <= middle && middle < box.bottom;
  });
  return [mark.className.split(' ')[1], (row?.textContent ?? '').trim().replace(/^\\S*[$#] /, '').slice(0, 10)];
})"""


def marked(page: Page, expected: list[list[str]]) -> None:
    wait_until(lambda: page.evaluate(MARKED) == expected, "the marks", seen=lambda: page.evaluate(MARKED))


def test_a_command_is_chosen_at_its_mark_copied_and_left(server: RunningServer, browser: Browser) -> None:
    make(server, "work", "bash --norc", rows=24, cols=40)
    for line in ("echo first; echo second", "false", "sleep 1000"):
        body = {"input": line, "max_wait_ms": 300 if "sleep" in line else 60_000}
        server.request("POST", "/sessions/work/run", body)
    with open_page(browser, permissions=["clipboard-read", "clipboard-write"]) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "sleep 1000" in text, "the commands")
        expected = [["good", "echo first"], ["bad", "false"], ["running", "sleep 1000"]]
        marked(page, expected)
        page.locator(".gutter-mark.good").click()
        bar = page.get_by_role("toolbar", name="This command")
        expect(bar).to_contain_text(re.compile(r"exit 0 · .*you"))
        expect(page.locator(".timeline li.at code")).to_have_text("echo first; echo second")
        bar.get_by_role("button", name="Copy output").click()
        expect(page.locator(".toast", has_text="Output copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == "first\nsecond"
        page.keyboard.press("Control+Shift+ArrowDown")
        expect(bar).to_contain_text("exit 1")
        page.keyboard.press("Escape")  # leaves the command; the program does not get it
        expect(bar).to_have_count(0)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/commands") else None)
        page.keyboard.press("Control+C")
        expected[2][0] = "bad"
        marked(page, expected)  # what is typed before the shell reads stands there twice
        page.keyboard.type("echo mi''ne\n")
        mine = ["good", "echo mi''n"]
        marked(page, [*expected, mine])
        expect(page.locator(".timeline li").first.locator(".by")).to_contain_text("you")
        assert asked == [], "what is told of a command does for asking for all of them"
        # Another width breaks lines elsewhere: the marks stay with their commands.
        assert server.request("POST", "/sessions/work/resize", {"rows": 24, "cols": 24}).status == 200
        wait_until(lambda: page.evaluate("window.wshSize().cols") == 24, "the new size")
        marked(page, [*expected, mine])
        page.keyboard.type("clear\n")
        marked(page, [])


def test_a_command_that_is_told_before_it_is_drawn_gets_its_mark_at_its_own_line(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "twins", "bash --norc", rows=24, cols=40)
    body = {"input": "echo twin", "max_wait_ms": 60_000}
    server.request("POST", "/sessions/twins/run", body)
    with open_page(browser) as watched:
        page = watched.page
        sight = HeldSight(page)
        page.goto(link(server))
        marked(page, [["good", "echo twin"]])
        sight.hold()
        server.request("POST", "/sessions/twins/run", body)
        expect(page.locator(".timeline li")).to_have_count(2)
        wait_for_news(page, lambda: sight.kept, "what is to be drawn")
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        sight.let_go()
        marked(page, [["good", "echo twin"], ["good", "echo twin"]])
        rows = page.evaluate("() => [...document.querySelectorAll('.single .gutter-mark')].map(one => one.style.top)")
        assert len(set(rows)) == 2, rows


def test_a_command_whose_line_is_gone_is_said_to_be(server: RunningServer, browser: Browser) -> None:
    make(server, "work", "bash --norc", rows=24, cols=80)
    long = "echo " + "word " * 30 + "end"
    for line in ("cd /", "ls", "clear", "echo false; echo cells; echo cd /", long, "seq 3000", "echo ls"):
        assert server.request("POST", "/sessions/work/run", {"input": line, "max_wait_ms": 60_000}).status == 200
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "\n3000\n" in text, "the numbers")
        gone = page.locator(".toast", has_text="no longer keeps the lines of that command")
        bar = page.get_by_role("toolbar", name="This command")
        first = page.locator(".single .xterm-rows > div")
        for command, is_gone in (("clear", True), ("ls", True), (long, False), ("cd /", True), ("echo ls", False)):
            item = page.locator(".timeline li").filter(has=page.get_by_text(command, exact=True))
            item.locator("summary").click()
            item.get_by_role("button", name="Show in terminal").click()
            if is_gone:
                expect(gone).to_be_visible()
                page.evaluate(
                    "() => document.querySelectorAll('.toast [aria-label=Dismiss]').forEach(one => one.click())"
                )
                expect(gone).to_have_count(0)
                expect(bar).to_have_count(0)
            else:
                expect(bar).to_be_visible()
                expect(first.filter(has_text=f"$ {command}"[:80])).to_have_count(1)
            item.locator("summary").click()
