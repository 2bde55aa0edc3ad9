"""Approvals of a server without a window, at the page: asked by an agent, approved by hand, with the output in the card."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from tests.http.test_server_approval import ask, read_end, shown
from tests.support.serving import RunningServer, running_server
from tests.support.web.browser import open_page, wait_for_news
from tests.web.test_access import AXE, grave
from wsh.wire.system.place import find_places


@pytest.fixture(scope="module")
def headless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    root = tmp_path_factory.mktemp("headless-page")
    with pytest.MonkeyPatch.context() as patch:
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (root / name).mkdir(mode=0o700)
            patch.setenv(variable, str(root / name))
        with running_server(find_places(), check_left=False, environ={"WSH_APPROVALS_SERVER": "true"}) as running:
            yield running


@pytest.fixture
def page(headless: RunningServer, browser: Browser) -> Iterator[Page]:
    with open_page(browser, bypass_csp=True) as watched:
        watched.page.goto(str(headless.request("POST", "/auth/link").json["url"]))
        yield watched.page


def test_a_request_without_a_window_is_approved_at_the_page_and_its_output_stands_in_the_card(
    page: Page, headless: RunningServer
) -> None:
    answer = ask(headless, "sh", "-c", "echo first line\necho second line\nexit 4")
    shown(headless, answer)
    page.locator(".asks").click()
    card = page.locator(".approval:not(.over)")
    expect(card).to_have_count(1)
    expect(card).to_contain_text("session of the server")
    expect(card.get_by_label("Script")).to_contain_text("echo second line")
    page.evaluate(AXE.read_text())
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.wait_for_timeout(300)  # colours change within 80 ms
        assert grave(page) == [], scheme
    card.get_by_role("button", name="Run once").click()
    over = page.locator(".approval.over").first
    expect(over).to_contain_text("approved")
    expect(over).to_contain_text("exit 4")
    expect(over.get_by_label("Output")).to_contain_text("second line")
    assert grave(page) == []
    assert read_end(headless, answer)["result"]["exit_code"] == 4
    assert shown(headless, answer)["where"] == "page"
    over.get_by_role("button", name="Watch session").click()
    expect(page.locator(".queue")).to_have_count(0)


def test_what_leaves_the_machine_is_named_and_wants_to_be_held(
    page: Page, headless: RunningServer, tmp_path: Path
) -> None:
    answer = ask(headless, "git", "push", "nowhere", "main", cwd=str(tmp_path))
    shown(headless, answer)
    page.locator(".asks").click()
    card = page.locator(".approval:not(.over)")
    expect(card.locator(".risk")).to_have_text("leaves the machine")
    expect(card.get_by_role("button", name="Hold to run once")).to_be_visible()
    assert card.get_by_role("button", name="Always").count() == 0
    card.get_by_role("button", name="Decline", exact=True).click()
    expect(page.locator(".approval.over").first).to_contain_text("declined")


def test_a_request_that_was_answered_does_not_come_back_with_an_older_look(page: Page, headless: RunningServer) -> None:
    shown(headless, ask(headless, "true"))
    page.locator(".asks").click()
    card = page.locator(".approval:not(.over)")
    expect(card).to_have_count(1)
    looks: list[Route] = []
    answers: list[APIResponse] = []

    def hold(route: Route) -> None:
        """The first answer is given at once, and arrives late."""
        looks.append(route)
        if len(looks) == 1:
            answers.append(route.fetch())
        else:
            route.continue_()

    page.route("**/approvals", hold)
    wait_for_news(page, lambda: answers, "a look at the requests")
    card.get_by_role("button", name="Decline", exact=True).click()
    expect(page.get_by_text("Declined. The caller is told.")).to_be_visible()
    page.evaluate("0")
    assert len(looks) == 1
    looks[0].fulfill(response=answers[0])
    expect(page.locator(".approval.over").first).to_contain_text("declined")
    expect(card).to_have_count(0)


def test_nothing_runs_before_all_of_it_was_in_view(page: Page, headless: RunningServer) -> None:
    answer = ask(headless, "true", *(f"argument-{number}" for number in range(3000)))
    shown(headless, answer)
    page.locator(".asks").click()
    card = page.locator(".approval:not(.over)")
    run = card.get_by_role("button", name="Run once")
    expect(run).to_be_disabled()
    expect(card).to_contain_text("Look through all of it first")
    expect(card.get_by_role("button", name="Decline", exact=True)).to_be_enabled()
    for _ in range(200):
        if run.is_enabled():
            break
        page.mouse.move(600, 400)
        page.mouse.wheel(0, 300)
        page.wait_for_timeout(50)
    expect(run).to_be_enabled()
    card.get_by_role("button", name="Decline", exact=True).click()
    expect(page.locator(".approval.over").first).to_contain_text("declined")
