"""What the page asked of a session on another machine ends when that machine is lost, with a stub where its server stands."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.support.serving import RunningServer
from tests.support.web.browser import open_page, wait_for_news
from tests.web.test_clipboard import PASTE
from tests.web.test_page import link, make, until


class LostHost:
    """Stands between a page and its server, as a server does whose way to the session's machine is lost: what is asked for gets no answer."""

    def __init__(self, page: Page) -> None:
        self.unanswered: list[str] = []
        self._page: WebSocketRoute | None = None
        page.route_web_socket(re.compile("/ws/view"), self._join)

    def _join(self, page: WebSocketRoute) -> None:
        self._page = page
        server = page.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            kind = json.loads(message)["type"] if isinstance(message, str) else ""
            if kind in ("mark", "scrollback"):
                self.unanswered.append(kind)
            else:
                server.send(message)

        page.on_message(pass_on)

    def tell(self, *, online: bool) -> None:
        assert self._page is not None
        self._page.send(json.dumps({"type": "host", "online": online}))


def test_a_paste_into_a_machine_that_is_lost_ends(server: RunningServer, browser: Browser) -> None:
    make(server, "far", "sh -c 'stty raw -echo; echo ready; exec cat > /dev/null'")
    with open_page(browser) as watched:
        page = watched.page
        host = LostHost(page)
        page.goto(link(server))
        until(watched, lambda t: "ready" in t, "the program")
        page.evaluate(PASTE, 3 << 16)
        page.get_by_role("button", name="Paste", exact=True).click()
        wait_for_news(page, lambda: "mark" in host.unanswered, "the pieces that are on their way")
        expect(page.get_by_role("progressbar", name="Paste")).to_be_visible()
        host.tell(online=False)
        expect(page.locator(".toast", has_text="The paste was stopped.")).to_be_visible()
        expect(page.get_by_role("progressbar", name="Paste")).to_have_count(0)


def test_earlier_lines_that_a_lost_machine_did_not_give_are_asked_for_again(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "far", "sh -c 'seq 1 5000; echo ready; exec cat'")
    with open_page(browser) as watched:
        page = watched.page
        host = LostHost(page)
        page.goto(link(server))
        until(watched, lambda t: "ready" in t, "the program")
        page.locator(".single .emulator").click()
        page.keyboard.press("Shift+Home")
        wait_for_news(page, lambda: host.unanswered == ["scrollback"], "the question", seen=lambda: host.unanswered)
        host.tell(online=False)
        host.tell(online=True)

        def is_asked_again() -> bool:
            page.keyboard.press("Shift+PageDown")
            page.keyboard.press("Shift+Home")
            return len(host.unanswered) > 1

        wait_for_news(page, is_asked_again, "the question again")
