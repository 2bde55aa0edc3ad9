"""The page's memory beside a session that never stops printing."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Browser, CDPSession

from tests.support.serving import RunningServer
from tests.support.waiting import wait_until
from tests.support.web.browser import own_page

FLOOD = "sh -c 'while :; do seq 1 5000; sleep 0.02; done'"
SCROLLBACK = 5000
"""Lines that the page keeps; memory may grow until they are there."""


def heap_mb(protocol: CDPSession) -> float:
    protocol.send("HeapProfiler.collectGarbage")
    return float(protocol.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


@pytest.mark.torture
@pytest.mark.timeout(1200)
def test_memory_stays_where_it_was_while_a_session_floods(
    server: RunningServer, browser: Browser, torture: bool
) -> None:
    flood_s = 600.0 if torture else 1.5
    assert server.request("POST", "/sessions", {"name": "flood", "command": FLOOD}).status == 201
    with own_page(browser) as watched:
        page = watched.page
        page.goto(str(server.request("POST", "/auth/link").json["url"]))
        page.wait_for_selector(".bar h1")
        protocol = page.context.new_cdp_session(page)
        wait_until(lambda: page.evaluate("wshText().split('\\n').length") > SCROLLBACK, "the scrollback to fill")
        before = heap_mb(protocol)
        end = time.monotonic() + flood_s
        seen = [before]
        while time.monotonic() < end:
            page.wait_for_timeout(min(30_000, flood_s * 500))
            seen.append(heap_mb(protocol))
        growth = (seen[-1] / before - 1) * 100
        print(f"heap over {flood_s:g} s of flood: {[round(mb, 1) for mb in seen]} MB, {growth:+.1f} %")
        # A heap of a few megabytes breathes by more than a tenth of itself.
        assert seen[-1] - before <= max(2.0, before / 10), f"{growth:+.1f} % over {flood_s:g} s: {seen}"
