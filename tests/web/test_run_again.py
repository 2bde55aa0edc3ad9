"""*Run again* types only onto an empty line, as every run does."""

from __future__ import annotations

from playwright.sync_api import Browser, Route, expect

from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_for_text
from tests.support.web.browser import open_page, wait_for_news
from tests.web.test_page import focus_terminal, link, make
from wsh.wire.system.place import Places


def test_run_again_leaves_a_half_typed_line_alone(server: RunningServer, browser: Browser) -> None:
    make(server, "half")
    assert server.request("POST", "/sessions/half/run", {"input": "echo one", "max_wait_ms": 60_000}).status == 200
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        command = page.locator(".timeline li", has_text="echo one")
        command.locator("summary").click()
        focus_terminal(page)
        page.keyboard.type("echo precious")
        wait_for_text(watched.text, lambda text: "echo precious" in text, "what was typed")
        command.get_by_role("button", name="Run again").click()
        expect(page.locator(".toast.bad")).to_contain_text("'echo precious' without completing it. Nothing was typed")
        expect(page.locator(".timeline code")).to_have_text(["echo one"])
        page.keyboard.press("Enter")  # the keyboard is in the terminal, where the line goes on as it was
        expect(page.locator(".timeline code")).to_have_text(["echo precious", "echo one"])
        command.get_by_role("button", name="Run again").click()
        expect(page.locator(".timeline code")).to_have_text(["echo one", "echo precious", "echo one"])


def test_whatever_one_sends_is_in_sight(server: RunningServer, browser: Browser) -> None:
    make(server, "long")
    assert server.request("POST", "/sessions/long/run", {"input": "seq 200", "max_wait_ms": 60_000}).status == 200
    with open_page(browser, viewport={"width": 900, "height": 600}, has_touch=True) as watched:
        page = watched.page
        page.goto(link(server))
        wait_for_text(watched.text, lambda text: "\n200" in text, "the numbers")
        rows = page.locator(".terminal .xterm-rows")

        def back() -> None:
            focus_terminal(page)
            page.keyboard.press("Shift+PageUp")
            expect(rows).not_to_contain_text("200")

        back()
        page.get_by_role("toolbar", name="Keys").get_by_role("button", name="|").click()
        expect(rows).to_contain_text("200")
        page.keyboard.press("Backspace")
        back()
        page.get_by_label("A line to send").fill("echo com''posed")
        page.get_by_role("button", name="Send").click()
        expect(rows).to_contain_text("composed")
        back()
        page.get_by_role("button", name="Commands").click()
        command = page.locator(".timeline li", has_text="posed").first
        command.locator("summary").click()
        command.get_by_role("button", name="Run again").click()
        expect(rows).to_contain_text("200")


def test_run_again_says_that_nothing_was_sent_while_the_server_is_away(places: Places, browser: Browser) -> None:
    server = start_server(places)
    make(server, "away")
    assert server.request("POST", "/sessions/away/run", {"input": "echo one", "max_wait_ms": 60_000}).status == 200
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        page.locator(".timeline summary", has_text="echo one").click()
        server.process.kill()
        server.process.wait()
        expect(page.locator(".notice.banner")).to_be_visible()
        page.get_by_role("button", name="Run again").click()
        expect(page.locator(".toast.bad", has_text="Not run: the server does not answer.")).to_be_visible()
        with running_server(places, bind=f"127.0.0.1:{server.port}"):
            expect(page.locator(".notice.banner")).to_have_count(0)
            page.keyboard.type("echo t''wo\n")
            wait_for_text(watched.text, lambda text: "\ntwo" in text, "what was typed")
        assert watched.text().count("\none") == 1


def test_commands_stay_in_their_list_while_the_server_cannot_be_asked_for_them(
    places: Places, browser: Browser
) -> None:
    server = start_server(places)
    make(server, "away")
    assert server.request("POST", "/sessions/away/run", {"input": "echo one", "max_wait_ms": 60_000}).status == 200
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        one = page.locator(".timeline summary", has_text="echo one")
        one.click()
        asked: list[str] = []

        def refuse(route: Route) -> None:
            asked.append(route.request.url)
            route.abort()

        page.route("**/sessions/away/commands", refuse)
        server.process.kill()
        server.process.wait()
        expect(page.locator(".notice.banner")).to_be_visible()
        with running_server(places, bind=f"127.0.0.1:{server.port}"):
            expect(page.locator(".notice.banner")).to_have_count(0)
            wait_for_news(page, lambda: asked, "the page to ask for the commands")
            expect(page.get_by_role("button", name="Run again")).to_be_visible()
            page.unroute("**/sessions/away/commands")
            page.keyboard.type("echo t''wo\n")
            expect(page.locator(".timeline summary", has_text="echo t''wo")).to_be_visible()
            expect(one).to_be_visible()
