"""Another server on another port of this host, and hostile words on the page, in a real browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import own_page, wait_for_news
from tests.web.test_page import link, make, until

PAGE = b"<!doctype html><title>a development server</title><p id=said>hello</p>"


class Neighbour(ThreadingHTTPServer):
    """A development server of the same user on another port; remembers what browsers send it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.heard: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Neighbour

    def do_GET(self) -> None:
        self.server.heard.append(dict(self.headers.items()))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def neighbour() -> Iterator[Neighbour]:
    with Neighbour() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_a_server_on_another_port_gets_the_cookie_and_nothing_for_it(server: RunningServer, browser: Browser) -> None:
    make(server, "mine")
    with own_page(browser) as watched, neighbour() as other:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        assert "#" not in page.url and "key" not in page.url
        beside = page.context.new_page()
        beside.goto(other.url)
        cookie = next(heard["Cookie"] for heard in other.heard if "Cookie" in heard)
        assert "wsh" in cookie, "browsers send cookies to every port: that is what this is about"
        for path in (
            "/sessions",
            "/approvals",
            "/sessions/mine/screen",
            "/sessions/mine/recording?format=asciicast-v2",
        ):
            stolen = server.request("GET", path, token=None, headers={"Cookie": cookie})
            assert (stolen.status, stolen.code) == (401, "auth_required")
        assert server.request("POST", "/auth/ws-ticket", token=None, headers={"Cookie": cookie}).status == 401
        assert "wsh.secret" in page.evaluate("JSON.stringify(localStorage)")
        assert "wsh.secret" not in beside.evaluate("JSON.stringify(localStorage)")
        # What the neighbour's own page can do with the browser's help: nothing is read, nothing is done, no socket opens.
        done = beside.evaluate(
            """async ([url, ws]) => {
              const tried = [];
              for (const [method, path] of [["GET", "/sessions"], ["POST", "/auth/link"], ["DELETE", "/sessions/mine"]])
                tried.push(await fetch(url + path, {method, credentials: "include"}).then(r => r.status, () => "failed"));
              tried.push(await fetch(url + "/sessions/mine/input", {method: "POST", mode: "no-cors", credentials: "include",
                body: "touch stolen\\r"}).then(r => r.type, () => "failed"));
              tried.push(await new Promise(done => {
                const socket = new WebSocket(ws + "/ws/json");
                socket.onopen = () => done("open"); socket.onerror = () => done("failed");
              }));
              return tried;
            }""",
            [server.url, server.ws_url],
        )
        assert done[:3] == ["failed"] * 3 and done[4] == "failed", done
        assert [info["name"] for info in server.get("/sessions")] == ["mine"]
        assert "stolen" not in watched.text()


def test_a_page_that_is_loaded_again_or_in_another_tab_is_still_signed_in(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "again")
    with own_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        page.reload()
        until(watched, lambda t: "$" in t, "the prompt after a reload")
        tab = page.context.new_page()
        tab.goto(server.url + "/ui/")
        expect(tab.locator(".bar h1")).to_have_text("again")
        tab.evaluate("localStorage.clear()")
        tab.reload()
        expect(tab.locator(".sign-in pre")).to_have_text("wsh link")


HOSTILE = "<img src=x onerror=window.harmed=1><script>window.harmed=1</script><svg onload=window.harmed=1>"


@pytest.fixture
def scripted(server: RunningServer, tmp_path: Path) -> str:
    """A session whose title, output, links, working folder, overlay and panel carry markup and addresses of scripts."""
    name = "hostile"
    lines = [
        f"\x1b]0;{HOSTILE}\x07\x1b]2;{HOSTILE}\x07",
        "\x1b]8;;javascript:window.harmed=1\x07click me\x1b]8;;\x07 ",
        f"\x1b]8;;data:text/html,{HOSTILE}\x07or me\x1b]8;;\x07 ",
        f"{HOSTILE} javascript:window.harmed=1\r\n",
    ]
    (tmp_path / "said").write_text("".join(lines))
    make(server, name, f"sh -c 'cat {tmp_path}/said; exec cat'")
    span = {"text": HOSTILE}
    overlay = {"x": 0, "y": 8, "width": 70, "height": 1, "spans": [span]}
    assert server.request("POST", f"/sessions/{name}/overlay", overlay).status == 201
    assert (
        server.request("POST", f"/sessions/{name}/panel", {"position": "bottom", "height": 1, "spans": [span]}).status
        == 201
    )
    return name


def test_no_word_of_a_program_or_an_agent_becomes_code_on_the_page(
    server: RunningServer, browser: Browser, scripted: str
) -> None:
    with own_page(browser) as watched:
        page = watched.page
        violations: list[str] = []
        page.on("console", lambda m: violations.append(m.text) if "Content Security Policy" in m.text else None)
        answer = page.goto(link(server))
        assert answer is not None
        policy = str(answer.headers["content-security-policy"])
        scripts = next(part for part in policy.split(";") if part.strip().startswith("script-src"))
        assert scripts.strip() == "script-src 'self'"
        until(watched, lambda t: "click me" in t and "onerror" in t, "the hostile words")
        wait_until(lambda: HOSTILE in str(server.get(f"/sessions/{scripted}")["title"]) or None, "the title")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("k")  # the palette lists sessions by name and title
        page.keyboard.type("hostile")
        page.keyboard.press("Escape")
        for key in ("Alt+g", "Alt+q", "Alt+i"):
            page.keyboard.press(key)
            expect(page.locator("body")).to_be_visible()
        page.keyboard.press("Alt+s")
        box = page.locator("input[type=search], .search input").first
        box.fill("onerror")
        box.press("Enter")
        expect(page.locator("body")).to_contain_text("onerror")
        assert page.evaluate("window.harmed") is None
        assert page.evaluate("document.querySelectorAll('img[onerror], svg[onload], main script').length") == 0
        assert page.evaluate("[...document.querySelectorAll('a')].every(a => /^(https?:|$)/.test(a.protocol))")
        # Even if markup got through, the policy would not run it.
        page.evaluate(
            """() => {
              const node = document.createElement('div');
              node.innerHTML = '<img src=x onerror="window.harmed = 1">';
              const script = document.createElement('script');
              script.textContent = 'window.harmed = 1';
              document.body.append(node, script);
              location.href = 'javascript:window.harmed=1';
            }"""
        )
        wait_for_news(page, lambda: len(violations) >= 2, "the browser's refusals", seen=lambda: json.dumps(violations))
        assert page.evaluate("window.harmed") is None
        watched.complaints.clear()  # the refusals just provoked
