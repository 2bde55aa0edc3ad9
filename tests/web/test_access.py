"""Accessibility of the page, judged by axe-core in every view, dark and light."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.serving import RunningServer
from tests.support.web.browser import open_page

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


# A rule's own weight is that of all that it finds, so those that can find nothing grave need not look. Only what is grave
# leaves the page.
LOOK = """() => {
  const light = axe._audit.rules.filter((rule) => rule.impact === 'minor' || rule.impact === 'moderate');
  const rules = Object.fromEntries(light.map((rule) => [rule.id, {enabled: false}]));
  return axe.run(document, {resultTypes: ['violations'], preload: false, rules}).then(({violations}) =>
    violations.filter(({impact}) => impact === 'serious' || impact === 'critical'));
}"""


def grave(page: Page) -> list[str]:
    """What axe-core calls serious or critical, one line per rule with the first places."""
    found: list[dict[str, Any]] = page.evaluate(LOOK)
    return [
        f"{rule['id']}: {[node['html'][:120] + ' ' + str(node['failureSummary'])[:200] for node in rule['nodes'][:3]]}"
        for rule in found
    ]


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_axe_finds_nothing_serious(
    scheme: Literal["dark", "light"], server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    for name, command in (("shell", "bash --norc"), ("failed", "sh -c 'echo no; exit 3'"), ("quiet", "cat")):
        body = {"name": name, "command": command, "tags": ["a-tag"], "env": {"PS1": "$ "}, "cwd": str(tmp_path)}
        assert server.request("POST", "/sessions", body).status == 201
    assert server.request("POST", "/sessions/shell/run", {"input": "false", "max_wait_ms": 60_000}).status == 200
    # Only the tool that looks needs this: the page's own policy lets no foreign script in.
    with open_page(browser, color_scheme=scheme, bypass_csp=True) as watched:
        page = watched.page
        page.goto(str(server.request("POST", "/auth/link").json["url"]))
        page.evaluate(AXE.read_text())
        problems: dict[str, list[str]] = {}

        def judge(view: str) -> None:
            if bad := grave(page):
                problems[view] = bad

        page.locator(".session", has_text="shell").click()
        expect(page.locator(".timeline code").first).to_have_text("false")
        page.locator(".timeline summary").first.click()
        expect(page.locator(".timeline details[open]")).to_contain_text("It printed nothing.")
        judge("single")
        page.get_by_role("tab", name="Details").click()
        judge("details")
        page.locator(".menu summary").click()
        judge("menu")
        page.locator(".menu summary").click()
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("k")
        expect(page.locator(".palette")).to_be_visible()
        judge("palette")
        page.keyboard.press("Escape")
        page.keyboard.press("Control+Backslash")
        page.keyboard.type("|")
        expect(page.locator(".chooser")).to_be_visible()
        page.get_by_label("Group sessions").select_option("state")
        judge("split")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("w")
        expect(page.locator(".layouts")).to_have_count(1)
        judge("layouts")
        page.keyboard.press("Escape")
        page.get_by_label("Group sessions").select_option("none")
        page.get_by_role("button", name="Close this part").first.click()
        page.get_by_role("button", name="New", exact=True).click()
        expect(page.locator(".dialog")).to_be_visible()
        judge("create")
        page.keyboard.press("Escape")
        page.keyboard.press("Alt+g")
        expect(page.locator(".tile")).to_have_count(3)
        judge("grid")
        for place, shown in (("Queue", ".queue"), ("Search", ".search"), ("Server", ".admin")):
            page.locator(".place", has_text=place).click()
            expect(page.locator(shown)).to_be_visible()
            judge(place)
        page.locator(".place", has_text="Search").click()
        page.get_by_label("Search terminals, transcripts and code").fill("false")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Terminals", exact=True).locator(".row").first).to_be_visible()
        expect(page.get_by_text("Searching…")).to_have_count(0)
        judge("results")
        page.set_viewport_size({"width": 390, "height": 780})
        page.locator(".hits .row").first.click()
        expect(page.get_by_role("toolbar", name="Keys")).to_be_visible()
        judge("phone")
        assert problems == {}
