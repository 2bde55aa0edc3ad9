"""A context that is kept for the next page has nothing left of the one before."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.support.serving import RunningServer
from tests.support.web.browser import Watched, open_page

LEAVE = """async () => {
  localStorage.setItem('left', '1');
  document.cookie = 'left=1; max-age=1000';
  await (await caches.open('left')).put('/left', new Response('left'));
}"""
LEFT = """async () => [
  localStorage.length, document.cookie, (await caches.keys()).length,
  (await navigator.permissions.query({name: 'geolocation'})).state, innerWidth,
]"""


def left(watched: Watched, server: RunningServer) -> list[object]:
    """What there is at a page of the server that stores nothing itself."""
    watched.page.goto(server.url + "/health")
    found: list[object] = watched.page.evaluate(LEFT)
    return found


def test_a_page_finds_nothing_of_the_one_before_it(server: RunningServer, browser: Browser) -> None:
    with open_page(browser) as watched:
        context, before = watched.page.context, left(watched, server)
    with open_page(browser, viewport={"width": 700, "height": 500}, permissions=["geolocation"]) as watched:
        assert watched.page.context == context, "it is the same one"
        watched.page.goto(server.url + "/health")
        watched.page.evaluate(LEAVE)
        watched.page.context.new_page()
        assert watched.page.evaluate(LEFT) == [1, "left=1", 1, "granted", 700]
    with open_page(browser) as watched, open_page(browser) as other:
        assert watched.page.context == context and other.page.context != context
        assert left(watched, server) == before == left(other, server)
