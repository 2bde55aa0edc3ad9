"""What hands know from other terminals: their keys, their wheel, and a list of commands that is long."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from tests.support.serving import RunningServer
from tests.support.web.browser import open_page
from tests.web.test_page import link, make, until
from tests.web.test_phone import PHONE
from tests.web.test_replay import open_replay


def test_the_usual_key_opens_find_and_keeps_the_keyboard_there(server: RunningServer, browser: Browser) -> None:
    make(server, "shell")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        field = page.get_by_label("Find in this terminal")
        page.keyboard.press("Control+Shift+F")
        page.keyboard.type("one")
        expect(field).to_have_value("one")
        page.locator(".single .emulator").click(position={"x": 20, "y": 200})
        page.keyboard.press("Control+Shift+F")
        page.keyboard.type("two")
        expect(field).to_have_value(re.compile("two"))


def test_escape_takes_a_selection_away_and_only_the_next_one_is_the_programs(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "keys", "sh -c 'stty raw -echo; echo ready; exec cat -v'")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "ready" in text, "the program")
        page.locator(".single .xterm-screen").dblclick(position={"x": 10, "y": 5})
        selection = page.locator(".single .xterm-selection div")
        expect(selection).not_to_have_count(0)
        page.keyboard.press("Escape")
        expect(selection).to_have_count(0)
        page.keyboard.type("a")
        page.keyboard.press("Escape")
        page.keyboard.type("b")
        assert "^[a" not in until(watched, lambda text: "a^[b" in text, "one Escape")


def test_of_many_commands_the_newest_are_listed_and_the_rest_on_demand(server: RunningServer, browser: Browser) -> None:
    make(server, "busy", "bash")
    with open_page(browser) as watched:
        page = watched.page
        many = [
            {"id": n, "command": f"true {n}", "exit_code": 0, "duration_ms": 1.0, "started": 1.0} for n in range(3000)
        ]
        rest = {"author": None, "first_line": 0, "last_line": 0, "output_bytes": 0, "cwd": "/"}
        page.route("**/sessions/busy/commands", lambda route: route.fulfill(json=[{**one, **rest} for one in many]))
        page.goto(link(server))
        codes = page.locator(".timeline code")
        expect(codes.first).to_have_text("true 2999")
        shown = codes.count()
        assert shown < 500
        page.get_by_role("button", name=f"{3000 - shown:,} earlier commands").click()
        expect(codes.nth(shown)).to_have_text(f"true {2999 - shown}")


def test_the_label_of_a_choice_in_the_export_menu_can_be_read(server: RunningServer, browser: Browser) -> None:
    make(server, "film")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        open_replay(page)
        page.locator(".replay summary", has_text="Export").click()
        menu = page.locator(".replay .menu > div")
        expect(menu).to_be_visible()
        assert menu.evaluate("menu => menu.scrollWidth <= menu.clientWidth"), "nothing is cut off"


def test_a_rename_keeps_the_place_in_the_list_and_the_keyboard(server: RunningServer, browser: Browser) -> None:
    for name in ("one", "two", "three"):
        make(server, name)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        names = page.locator(".session .name bdi")
        expect(names).to_have_text(["one", "two", "three"])
        page.locator(".menu summary").click()
        page.get_by_role("button", name="Rename…").click()
        page.get_by_label("New name").fill("first")
        page.keyboard.press("Enter")
        page.keyboard.type("echo $((40+2))\n")
        until(watched, lambda text: "\n42\n" in text, "what was typed right after")
        expect(names).to_have_text(["first", "two", "three"])
        page.reload()
        expect(names).to_have_text(["first", "two", "three"])


def test_kill_is_asked_about_and_answered_by_keys_that_reach_no_terminal(
    server: RunningServer, browser: Browser
) -> None:
    for name in ("one", "two"):
        make(server, name, "cat")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("one")
        kill = page.get_by_role("dialog", name="Kill one?")
        for answer in ("Escape", "Enter"):
            page.keyboard.press("Control+Backslash")
            page.keyboard.press("k")
            page.keyboard.type("kill one")
            page.keyboard.press("Enter")
            expect(kill.get_by_role("button", name="Kill")).to_be_focused()
            page.keyboard.press(answer)
            name = "one" if answer == "Escape" else "two"
            expect(page.locator(".bar h1")).to_have_text(name)
            page.keyboard.type("typed\n")
            until(watched, lambda text: text.strip() == "typed\ntyped", f"only what was typed after it, in {name}")
        assert [info["name"] for info in server.get("/sessions")] == ["two"]


def test_without_a_session_enter_opens_a_shell_at_once(server: RunningServer, browser: Browser) -> None:
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.get_by_role("button", name="Open a shell")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.type("echo $((40+2))\n")
        until(watched, lambda text: "\n42" in text, "a shell that has what was typed")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_notch_of_the_wheel_is_three_lines_to_a_program_that_does_not_hear_of_it(
    server: RunningServer, browser: Browser
) -> None:
    make(server, "pager", r"""sh -c 'stty raw -echo; printf "\033[?1049h\033[Hready "; exec cat -v'""")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "ready" in text, "the program")
        page.locator(".single .emulator").hover()
        page.mouse.wheel(0, 120)
        page.keyboard.type("x")
        until(watched, lambda text: "ready ^[[B^[[B^[[Bx" in text, "three arrows")


def test_on_a_phone_find_has_its_buttons_in_one_row(server: RunningServer, browser: Browser) -> None:
    make(server, "shell")
    with open_page(browser, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        page.locator(".menu summary").tap()
        page.get_by_role("button", name="Find…").tap()
        buttons = page.locator(".find button")
        expect(buttons).to_have_count(5)
        for width, height in ((390, 844), (844, 390)):
            page.set_viewport_size({"width": width, "height": height})
            tops = buttons.evaluate_all("all => all.map(e => Math.round(e.getBoundingClientRect().top))")
            assert len(set(tops)) == 1
            box = page.locator(".find").bounding_box()
            assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= width


def test_the_sheet_of_keys_opens_at_its_top(server: RunningServer, browser: Browser) -> None:
    make(server, "shell")
    with open_page(browser, viewport={"width": 720, "height": 450}) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda text: "$" in text, "the prompt")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("?")
        sheet = page.get_by_role("dialog", name="Keys")
        expect(sheet.get_by_role("heading", name="Keys")).to_be_in_viewport()
        expect(sheet.get_by_role("button", name="Close")).not_to_be_in_viewport()
        expect(sheet.get_by_role("heading", name="Keys")).to_be_focused()
        page.keyboard.press("Escape")
        expect(sheet).to_have_count(0)
        page.keyboard.type("echo mi''ne\n")
        until(watched, lambda text: "\nmine" in text, "the keyboard is in the terminal")
