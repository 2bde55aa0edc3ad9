"""One browser and one server for all tests of the page; sessions are gone after their test."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.support.serving import RunningServer, running_server
from tests.support.web.browser import launched
from wsh.wire.system.place import find_places


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with launched(playwright) as running:
        yield running


@pytest.fixture(scope="package")
def whole_browser(playwright: Playwright) -> Iterator[Browser]:
    with launched(playwright, whole=True) as running:
        yield running


@pytest.fixture(scope="package")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("web")
    patch = pytest.MonkeyPatch()
    for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
        (folder / name).mkdir(mode=0o700)
        patch.setenv(variable, str(folder / name))
    try:
        with running_server(find_places()) as running:
            # The variables hold for this server alone: tests that start one of their own set theirs.
            patch.undo()
            yield running
    finally:
        patch.undo()


@pytest.fixture
def server(shared_server: RunningServer) -> Iterator[RunningServer]:
    yield shared_server
    names = [info["name"] for info in shared_server.get("/sessions")]
    # All at once: each look at the processes of the machine is one for all sessions that end then.
    with ThreadPoolExecutor() as pool:
        for reply in pool.map(lambda name: shared_server.request("DELETE", f"/sessions/{name}"), names):
            assert reply.status in (204, 404), reply
