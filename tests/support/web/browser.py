"""A real browser for tests of the page; what it complains about fails the test."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from playwright.sync_api import (
    Browser,
    BrowserContext,
    CDPSession,
    Page,
    Playwright,
    ViewportSize,
    WebSocketRoute,
    expect,
    sync_playwright,
)

from tests.support.waiting import HANG_S, wait_until

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=SpareRendererForSitePerProcess",
    # A page that is opened in a kept context finds a process there, which has read the page's program before.
    "--renderer-process-limit=1",
    # A test's page lives for a second or two: drawing in a process of its own, and optimising its program, cost more than they bring.
    "--in-process-gpu",
    "--js-flags=--no-opt --no-maglev",
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


class HeldSight:
    """Stands between a page and what its server sends to be drawn: while it holds, nothing of that comes."""

    def __init__(self, page: Page) -> None:
        self.kept: list[str | bytes] | None = None
        self._page: WebSocketRoute | None = None
        page.route_web_socket(re.compile("/ws/view"), self._join)

    def _join(self, page: WebSocketRoute) -> None:
        self._page = page
        page.connect_to_server().on_message(self._hear)

    def _hear(self, message: str | bytes) -> None:
        assert self._page is not None
        if self.kept is None:
            self._page.send(message)
        else:
            self.kept.append(message)

    def hold(self) -> None:
        self.kept = []

    def let_go(self) -> None:
        assert self._page is not None
        kept, self.kept = self.kept or [], None
        for message in kept:
            self._page.send(message)


def wait_for_news(
    page: Page, condition: Callable[[], object], what: str, *, seen: Callable[[], object] | None = None
) -> None:
    """As `wait_until`, for what the browser tells us by itself: it gets through only while the page is asked something."""

    def ask() -> object:
        page.evaluate("0")
        return condition()

    wait_until(ask, what, seen=seen)


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
    """A page that knows nothing of those before it. Errors and exceptions in its console fail the test at the end.

    Its context is kept for the next page with the same options, without what was stored in it: that takes a quarter less
    processor time than a new one. No worker of the page stands between it and its server; `own_page` has one.
    """
    viewport = options.pop("viewport", _VIEWPORT)
    permissions = options.pop("permissions", [])
    kept = _take(browser, options)
    try:
        with _watched(kept.context) as watched:
            watched.page.on("framenavigated", lambda frame: kept.origins.add("/".join(frame.url.split("/")[:3])))
            watched.page.set_viewport_size(viewport)
            kept.context.grant_permissions(permissions)
            yield watched
        kept.empty()
    except BaseException:
        kept.context.close()
        raise
    _KEPT[browser].append(kept)


@contextmanager
def own_page(browser: Browser, **options: Any) -> Iterator[Watched]:
    """As `open_page`, in a context that nobody had before: for what stays with a context, and for the page's worker."""
    context = browser.new_context(**{"viewport": _VIEWPORT, **options})
    try:
        with _watched(context) as watched:
            yield watched
    finally:
        context.close()


_VIEWPORT: ViewportSize = {"width": 1280, "height": 800}


@dataclass
class _Kept:
    """A context that outlives its pages. One that shows nothing keeps the process of the others alive."""

    options: dict[str, Any]
    context: BrowserContext
    first: Page
    protocol: CDPSession
    origins: set[str] = field(default_factory=set)

    def empty(self) -> None:
        for page in self.context.pages:
            if page != self.first:
                page.close()
        self.context.clear_cookies()
        self.context.clear_permissions()
        for origin in self.origins:
            self.protocol.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        self.origins.clear()


_KEPT: WeakKeyDictionary[Browser, list[_Kept]] = WeakKeyDictionary()
"""Contexts of each browser that no page uses now."""


def _take(browser: Browser, options: dict[str, Any]) -> _Kept:
    free = _KEPT.setdefault(browser, [])
    for kept in reversed(free):  # the one that was used last
        if kept.options == options:
            free.remove(kept)
            return kept
    context = browser.new_context(viewport=_VIEWPORT, service_workers="block", **options)
    first = context.new_page()
    kept = _Kept(options, context, first, context.new_cdp_session(first))
    return kept


@contextmanager
def _watched(context: BrowserContext) -> Iterator[Watched]:
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
        page.close()
    assert watched.complaints == [], watched.complaints
