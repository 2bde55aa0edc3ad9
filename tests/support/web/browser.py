"""A real browser for tests of the page; what it complains about fails the test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.support.waiting import HANG_S

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=SpareRendererForSitePerProcess",
]
expect.set_options(timeout=HANG_S * 1000)  # Playwright's own five seconds are no hang on a busy machine

# The software renderer's own remarks about its speed are no fault of the page.
_HARMLESS = ("GL Driver Message", "Failed to load resource", "WebSocket connection to", "ERR_CONNECTION")


@dataclass
class Watched:
    page: Page
    complaints: list[str] = field(default_factory=list)

    def text(self) -> str:
        """What the selected terminal shows, read from the emulator's own buffer."""
        return str(self.page.evaluate("window.wshText ? window.wshText() : ''"))


@contextmanager
def launched(playwright: Playwright, whole: bool = False) -> Iterator[Browser]:
    """The same engine without the browser around it where it is to be had: it takes half the processor time.

    `whole` is for what only the browser around it can do, such as being told by a push.
    """
    path = (None if whole else shutil.which("chromium-headless-shell")) or shutil.which("chromium")
    assert path is not None, "Debian's chromium is needed"
    browser = playwright.chromium.launch(executable_path=path, args=ARGS)
    try:
        yield browser
    finally:
        browser.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright, launched(playwright) as browser:
        yield browser


@contextmanager
def open_page(browser: Browser, **options: Any) -> Iterator[Watched]:
    """A page in a context of its own. Errors and exceptions in its console fail the test at the end."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    page = context.new_page()
    watched = Watched(page)
    page.on("pageerror", lambda problem: watched.complaints.append(str(problem)))
    page.on(
        "console",
        lambda message: (
            watched.complaints.append(message.text)
            if message.type == "error" and not any(word in message.text for word in _HARMLESS)
            else None
        ),
    )
    try:
        yield watched
    finally:
        context.close()
    assert watched.complaints == [], watched.complaints
