"""The search box: terminals, transcripts and files, and what is not indexed yet."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.support.serving import RunningServer
from tests.support.web.browser import open_page


def look_for(page: Page, text: str) -> None:
    page.get_by_label("Search terminals, transcripts and code").fill(text)
    page.get_by_role("button", name="Search", exact=True).last.click()


def test_one_box_finds_screens_transcripts_and_files_and_builds_what_is_missing(
    server: RunningServer, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "stable.py").write_text("def count_zebras(herd):\n    return len(herd)\n")
    body = {"name": "herd", "command": "bash --norc", "cwd": str(tmp_path), "env": {"PS1": "$ "}}
    assert server.request("POST", "/sessions", body).status == 201
    ran = server.request("POST", "/sessions/herd/run", {"input": "echo zebras: 'a<b>b'", "max_wait_ms": 60_000})
    assert ran.status == 200
    server.request("POST", "/sessions/herd/run", {"input": "seq 1 60", "max_wait_ms": 60_000})
    with open_page(browser) as watched:
        page = watched.page
        page.goto(str(server.request("POST", "/auth/link").json["url"]))
        expect(page.locator(".bar h1")).to_have_text("herd")
        page.keyboard.press("Alt+s")
        expect(page.get_by_label("Files of")).to_have_value(str(tmp_path))
        look_for(page, "zebras")
        terminals, transcripts, files = (
            page.get_by_label(name, exact=True) for name in ("Terminals", "Transcripts", "Files")
        )
        expect(terminals).to_contain_text("zebras: a<b>b")
        expect(transcripts.locator(".hit")).to_contain_text("echo zebras")
        expect(transcripts.locator("mark").first).to_have_text("zebras")
        expect(files).to_contain_text("is not indexed yet")
        assert files.locator(".hit").count() == 0
        files.get_by_role("button", name="Index this folder").click()
        expect(files.locator(".hit")).to_contain_text("stable.py:1", timeout=30_000)
        expect(files.locator("mark").first).to_have_text("zebras")
        assert page.locator(".search b").count() == 0, "markup is text"
        look_for(page, "nothing-has-this")
        expect(terminals).to_contain_text("Nothing on any screen")
        expect(transcripts).to_contain_text("No command")
        expect(files).to_contain_text("No file")
        look_for(page, "(zebras")
        expect(files.locator(".why")).to_contain_text("bracket")
        page.get_by_label("How to match").select_option("literal")
        look_for(page, "zebras: a<b>b")
        expect(terminals.locator(".row")).to_have_count(1)
        page.get_by_label("How to match").select_option("regex")
        look_for(page, "zebras: [")
        expect(terminals.locator(".why")).to_be_visible()
        look_for(page, "^zebras: a.b.b$")
        terminals.locator(".row").click()
        expect(page.locator(".bar h1")).to_have_text("herd")
        page.wait_for_timeout(50)
        shown = page.locator(".single .xterm-rows")
        expect(shown).to_contain_text("zebras: a<b>b")


def test_a_folder_that_is_not_there_is_said(server: RunningServer, browser: Browser) -> None:
    with open_page(browser) as watched:
        page = watched.page
        page.goto(str(server.request("POST", "/auth/link").json["url"]))
        page.locator(".place", has_text="Search").click()
        page.get_by_label("Files of").fill("/no/such/folder")
        look_for(page, "anything")
        expect(page.get_by_label("Files", exact=True).locator(".why")).to_contain_text("/no/such/folder")
        expect(page.get_by_label("Transcripts", exact=True)).to_contain_text("No command")
