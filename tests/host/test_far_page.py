"""A session on another machine in a real browser: its group, its terminal, and a cut."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.host.conftest import Net
from tests.support.waiting import wait_for_text
from tests.support.web.browser import chromium, open_page

pytestmark = pytest.mark.accept


def test_a_person_works_at_the_page_in_a_session_of_another_machine(net: Net) -> None:
    body = {"name": "near/page", "command": "bash --norc", "env": {"PS1": "$ "}}
    assert net.server.request("POST", "/sessions", body).status == 201
    with chromium() as browser, open_page(browser) as watched:
        page = watched.page
        page.goto(str(net.server.request("POST", "/auth/link").json["url"]))
        expect(page.locator(".sessions summary bdi")).to_contain_text(["far", "near"])
        page.locator(".session", has_text="near/page").click()
        wait_for_text(watched.text, lambda text: "$" in text, "the prompt")
        page.keyboard.type("echo sum $((20+22))\n")
        wait_for_text(watched.text, lambda text: "sum 42" in text, "what was typed")
        expect(page.locator(".bar h1")).to_have_text("near/page")
        machine = net.ssh.machines["near"]
        machine.stop()
        try:
            expect(page.locator(".lost")).to_be_visible(timeout=60_000)
            expect(page.locator(".sessions summary bdi", has_text="near: out of reach")).to_be_visible(timeout=60_000)
            expect(page.locator(".session", has_text="near/page")).to_have_class(re.compile("away"), timeout=60_000)
        finally:
            machine.start()
        expect(page.locator(".lost")).to_have_count(0, timeout=60_000)
        page.locator(".single .emulator").click()
        page.keyboard.type("echo again $((20+23))\n")
        wait_for_text(watched.text, lambda text: "again 43" in text, "what was typed after the cut")
    assert net.server.request("DELETE", "/sessions/near%2Fpage").status == 204
