"""The page in headless Chromium over a real server: weight of the first load, frames while sessions print, echo of a key
beside a flood, and whether memory stays where it was."""

from __future__ import annotations

import gzip
import re
import time
from pathlib import Path

from playwright.sync_api import CDPSession, Page
from tests.support.serving import RunningServer, running_server
from tests.support.web.browser import chromium, own_page

from bench.private import private_places
from bench.row import Row, at_least, at_most, percentile

GROUP = "page"
BUILT = Path(__file__).parents[1] / "src" / "wsh" / "http" / "static" / "ui"
SESSIONS, BUSY = 20, 5
FRAMES_S = 5.0
FLOOD_S = 30.0
KEYS = 30
BUSY_COMMAND = "sh -c 'n=0; while :; do n=$((n+1)); printf \"%s line of a busy build\\n\" $n; sleep 0.02; done'"
FLOOD_COMMAND = "sh -c 'while :; do seq 1 20000; done'"

COUNT_FRAMES = """ms => new Promise(done => {
  const start = performance.now(); let frames = 0;
  const tick = now => now - start < ms ? (frames++, requestAnimationFrame(tick)) : done(frames / (now - start) * 1000);
  requestAnimationFrame(tick);
})"""
# From the key's own event to the moment the emulator holds its letter.
TIME_KEYS = """() => {
  window.benchEchoes = [];
  addEventListener('keydown', event => {
    const start = performance.now(), before = wshText().split(event.key).length;
    const port = new MessageChannel();
    port.port1.onmessage = () => {
      if (wshText().split(event.key).length > before) benchEchoes.push(performance.now() - start);
      else if (performance.now() - start < 2000) port.port2.postMessage(0);
    };
    port.port2.postMessage(0);
  }, true);
}"""


def run() -> list[Row]:
    weight = _first_load()
    with private_places() as places, running_server(places, check_left=False) as server, chromium() as browser:
        with own_page(browser, viewport={"width": 1280, "height": 1440}) as watched:
            rows = [weight, *_frames(server, watched.page), _echo(server, watched.page)]
            return [*rows, _memory(server, watched.page)]


def _first_load() -> Row:
    html = (BUILT / "index.html").read_text()
    files = [BUILT / "index.html", *(BUILT / name for name in re.findall(r"\./(assets/[\w.-]+)", html))]
    kilobytes = sum(len(gzip.compress(path.read_bytes())) for path in files) / 1024
    return at_most(GROUP, "first load, gzipped", kilobytes, 300, "KB")


def _make(server: RunningServer, name: str, command: str) -> None:
    assert server.request("POST", "/sessions", {"name": name, "command": command}).status == 201


def _open(server: RunningServer, page: Page) -> None:
    page.goto(str(server.request("POST", "/auth/link").json["url"]))
    page.wait_for_selector(".bar h1")


def _wait(page: Page, expression: str, timeout_s: float = 10.0) -> None:
    """Playwright's own waiting evaluates text inside the page, which the page's policy forbids."""
    end = time.monotonic() + timeout_s
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"not within {timeout_s:g} s: {expression}"
        page.wait_for_timeout(20)


def _frames(server: RunningServer, page: Page) -> list[Row]:
    """Beside thumbnails, and in the grid, against an empty page in the same browser."""
    for number in range(SESSIONS):
        _make(server, f"s{number:02}", BUSY_COMMAND if number < BUSY else "cat")
    _open(server, page)
    _wait(page, f"document.querySelectorAll('.session canvas').length === {SESSIONS}")
    page.wait_for_timeout(1500)
    frames = float(page.evaluate(COUNT_FRAMES, FRAMES_S * 1000))
    blank = page.context.new_page()
    most = float(blank.evaluate(COUNT_FRAMES, 2000))
    blank.close()
    page.bring_to_front()
    page.keyboard.press("Alt+g")
    _wait(page, f"document.querySelectorAll('.tile .xterm').length === {SESSIONS}")
    page.wait_for_timeout(1500)
    grid = float(page.evaluate(COUNT_FRAMES, FRAMES_S * 1000))
    page.keyboard.press("Alt+g")
    return [
        at_least(GROUP, f"frames per second, {title}", found, most, "fps", "an empty page", 0.5)
        for title, found in (
            (f"{SESSIONS} thumbnails, {BUSY} busy", frames),
            (f"the grid of {SESSIONS}, {BUSY} busy", grid),
        )
    ]


def _echo(server: RunningServer, page: Page) -> Row:
    for number in range(SESSIONS):
        server.request("DELETE", f"/sessions/s{number:02}")
    _make(server, "typed", "cat")
    _make(server, "flood", FLOOD_COMMAND)
    page.locator(".session", has_text="typed").click()
    page.wait_for_timeout(1000)
    page.evaluate(TIME_KEYS)
    page.locator(".single .emulator").click()
    for number in range(KEYS):
        page.keyboard.press("abcdefghij"[number % 10])
        _wait(page, f"benchEchoes.length > {number}")
    echoes = [float(value) for value in page.evaluate("benchEchoes")]
    return at_most(GROUP, "key to echo beside a flood, median", percentile(echoes, 0.5), 50, "ms")


def _memory(server: RunningServer, page: Page) -> Row:
    """The heap after a collection, once the scrollback is full and again after the flood went on."""
    page.locator(".session", has_text="flood").click()
    protocol = page.context.new_cdp_session(page)
    page.wait_for_timeout(8000)
    before = _heap(protocol)
    end = time.monotonic() + FLOOD_S
    while time.monotonic() < end:
        page.wait_for_timeout(500)
    growth = (_heap(protocol) / before - 1) * 100
    server.request("DELETE", "/sessions/flood")
    return at_most(GROUP, f"growth of the heap over {FLOOD_S:g} s of flood", growth, 10, "%")


def _heap(protocol: CDPSession) -> float:
    protocol.send("HeapProfiler.collectGarbage")
    return float(protocol.send("Runtime.getHeapUsage")["usedSize"])
