"""The page in a real browser over a real server, used as a person would."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.support.bridge.program import running_desktop
from tests.support.serving import RunningServer, running_server, start_server
from tests.support.waiting import wait_for_text
from tests.support.web.browser import Watched, open_page, own_page
from wsh.look import css
from wsh.wire.system.place import Places

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "wsh" / "http" / "static" / "ui"


def link(server: RunningServer) -> str:
    return str(server.request("POST", "/auth/link").json["url"])


def make(server: RunningServer, name: str, command: str = "bash --norc", **more: object) -> None:
    body = {"name": name, "command": command, "env": {"PS1": "$ "}, **more}
    assert server.request("POST", "/sessions", body).status == 201


def until(watched: Watched, condition: Callable[[str], bool], what: str) -> str:
    return wait_for_text(watched.text, condition, what)


def focus_terminal(page: Page) -> None:
    page.locator(".single .emulator").click()


def test_a_person_signs_in_types_renames_and_kills(server: RunningServer, browser: Browser) -> None:
    make(server, "work", tags=["blue"])
    with own_page(browser) as watched:
        page = watched.page
        page.goto(server.url + "/ui/")
        assert "wsh" in page.content() and page.locator(".sidebar").count() == 0, "nothing without signing in"
        url = link(server)
        page.goto(url)
        expect(page.locator(".session .name")).to_have_text(re.compile("work"))
        assert "code=" not in page.url
        until(watched, lambda t: "$" in t, "the prompt")
        page.locator(".session").first.click()  # it is shown already: a click puts the keyboard into it
        page.keyboard.type("echo sum $((20+22))\n")
        until(watched, lambda t: "sum 42" in t, "what was typed")
        expect(page.locator(".timeline code").first).to_have_text("echo sum $((20+22))")
        page.locator(".timeline summary").first.click()
        expect(page.locator(".timeline .output").first).to_contain_text("sum 42")
        page.locator(".menu summary").click()
        page.get_by_role("button", name="Rename…").click()
        page.get_by_label("New name").fill("renamed")
        page.keyboard.press("Enter")
        expect(page.locator(".session .name")).to_have_text(re.compile("renamed"))
        page.reload()
        expect(page.locator(".bar h1")).to_have_text("renamed")
        until(watched, lambda t: "sum 42" in t, "the same screen after a reload")
        page.locator(".menu summary").click()
        page.get_by_role("button", name="Kill…").click()
        page.get_by_role("dialog", name="Kill renamed?").get_by_role("button", name="Kill").click()
        expect(page.locator(".session")).to_have_count(0)
        expect(page.locator(".empty-stage")).to_be_visible()
        assert server.get("/sessions") == []
    second = server.request("GET", "/auth/open?" + url.partition("?")[2], token=None)
    assert second.status in (401, 403), "the link works once"


def test_a_session_is_created_here_with_its_command(server: RunningServer, browser: Browser) -> None:
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        page.get_by_role("button", name="New", exact=True).click()
        page.get_by_label("Command").fill("sh -c 'echo from the dialog; exec cat'")
        page.get_by_label("Name").fill("made.here")
        page.get_by_role("button", name="Start").click()
        expect(page.locator(".bar h1")).to_have_text("made.here")
        until(watched, lambda t: "from the dialog" in t, "its output")


def test_an_overlay_appears_and_goes_without_a_trace(server: RunningServer, browser: Browser) -> None:
    make(server, "drawn", "sh -c 'seq 1 10; exec cat'")
    with open_page(browser) as watched:
        watched.page.goto(link(server))
        before = until(watched, lambda t: "\n10" in t, "the numbers")
        element = {"x": 2, "y": 1, "width": 12, "height": 2, "spans": [{"text": "HELLO AGENT"}], "background": "blue"}
        made = server.request("POST", "/sessions/drawn/overlay", element).json
        until(watched, lambda t: "HELLO AGENT" in t, "the overlay")
        server.request("DELETE", f"/sessions/drawn/overlay/{made['id']}")
        after = until(watched, lambda t: "HELLO" not in t, "its end")
        assert after.strip() == before.strip()


def test_the_page_comes_back_by_itself_after_the_server_died(places: Places, browser: Browser) -> None:
    server = start_server(places)
    port = server.port
    with own_page(browser) as watched:
        make(server, "survivor")
        watched.page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        focus_terminal(watched.page)
        watched.page.keyboard.type("echo before\n")
        until(watched, lambda t: "\nbefore" in t, "the first echo")
        server.process.kill()
        server.process.wait()
        expect(watched.page.locator(".banner, .lost").first).to_be_visible()
        with running_server(places, bind=f"127.0.0.1:{port}"):
            expect(watched.page.locator(".banner")).to_have_count(0, timeout=20_000)
            expect(watched.page.locator(".lost")).to_have_count(0, timeout=20_000)
            until(watched, lambda t: "before" in t, "what was there before")
            focus_terminal(watched.page)
            watched.page.keyboard.type("echo after\n")
            until(watched, lambda t: "\nafter" in t, "keys reach the session again")


def test_a_session_can_be_replayed_to_any_moment(server: RunningServer, browser: Browser) -> None:
    make(server, "film", "sh -c 'echo first; sleep 0.6; echo second; sleep 0.6; echo third; exec cat'")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "third" in t, "the whole film")
        page.locator(".menu summary").click()
        page.get_by_role("button", name="Replay").click()
        slider = page.get_by_label("Time")
        expect(slider).to_be_visible()
        expect(slider).not_to_have_attribute("max", "0")
        rows = page.locator(".film .xterm-rows")
        film = server.request("GET", "/sessions/film/recording?format=asciicast-v2").body.decode().splitlines()[1:]
        early = next(event[0] for event in map(json.loads, film) if "first" in event[2]) + 0.1
        slider.fill(f"{early:.2f}")
        expect(rows).to_contain_text("first")
        expect(rows).not_to_contain_text("second")
        longest = str(page.evaluate("document.querySelector('.scrubber input').max"))
        slider.fill(longest)
        expect(rows).to_contain_text("third")
        slider.fill(f"{early:.2f}")
        expect(rows).not_to_contain_text("third")


def test_names_and_titles_full_of_markup_are_shown_as_text(server: RunningServer, browser: Browser) -> None:
    title = "<img src=x onerror=alert(1)>"
    make(server, "odd", f"sh -c 'printf \"\\033]2;{title}\\007\"; exec cat'")
    with open_page(browser) as watched:
        watched.page.goto(link(server))
        expect(watched.page.locator(".session .soft").first).to_have_text(title)
        assert watched.page.locator("img").count() == 0


def test_a_person_takes_over_and_hands_back(server: RunningServer, browser: Browser) -> None:
    make(server, "mine")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        page.get_by_role("button", name="Take over").click()
        expect(page.get_by_role("button", name="Hand back")).to_be_visible()
        refused = server.request("POST", "/sessions/mine/input", b"x", headers={"wsh-role": "agent"})
        assert (refused.status, refused.code) == (409, "session_taken")
        page.get_by_role("button", name="Hand back").click()
        expect(page.get_by_role("button", name="Take over")).to_be_visible()
        assert server.request("POST", "/sessions/mine/input", b"x", headers={"wsh-role": "agent"}).status == 204


def test_the_bar_keeps_names_and_buttons_whole_and_says_who_typed(server: RunningServer, browser: Browser) -> None:
    make(server, "build-and-test.main", "sh -c 'sleep 0.5; read x; sleep 60'", cwd="/usr/share")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".inspector")).to_be_visible()
        assert (
            server.request("POST", "/sessions/build-and-test.main/input", b"x", headers={"wsh-role": "agent"}).status
            == 204
        )
        expect(page.locator(".who")).to_contain_text("typed by agent")
        name = page.locator(".bar h1")
        assert name.evaluate("e => e.scrollWidth <= e.clientWidth"), "the name is shown whole"
        heights = page.locator(".bar button, .bar summary").evaluate_all("all => all.map(e => e.offsetHeight)")
        assert max(heights) <= 30, f"no label is broken into two lines: {heights}"
        focus_terminal(page)
        page.keyboard.type("hello")
        until(watched, lambda t: "hello" in t, "the echo")
        expect(page.locator(".who")).to_contain_text("typed by a person")


def test_the_bar_says_who_typed_though_the_program_never_falls_silent(server: RunningServer, browser: Browser) -> None:
    make(server, "busy", "sh -c 'while :; do date +%N; sleep 0.1; done'")
    typed = server.request("POST", "/sessions/busy/input", b"x", headers={"wsh-role": "agent"})
    assert typed.status == 204
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".who")).to_contain_text("typed by agent")
        page.keyboard.type("y")
        expect(page.locator(".who")).to_contain_text("typed by a person")


def test_the_palette_and_the_grid_work_by_keyboard(server: RunningServer, browser: Browser) -> None:
    for name in ("one", "two", "three"):
        make(server, name)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".session")).to_have_count(3)
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("k")
        page.keyboard.type("go to three")
        page.keyboard.press("Enter")
        expect(page.locator(".bar h1")).to_have_text("three")
        page.keyboard.press("Alt+g")
        expect(page.locator(".tile")).to_have_count(3)
        assert server.get("/sessions/two")["cols"] == 80, "looking does not resize"
        page.keyboard.press("Alt+s")
        expect(page.get_by_label("Search terminals, transcripts and code")).to_be_visible()


def test_a_phone_shows_one_terminal_and_a_drawer(server: RunningServer, browser: Browser) -> None:
    make(server, "pocket")
    with open_page(browser, viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("pocket")
        expect(page.locator(".sidebar")).not_to_be_in_viewport()
        page.get_by_role("button", name="Sessions").click()
        expect(page.locator(".session")).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        for place, shown in (("Queue", ".queue"), ("Search", ".search"), ("Server", ".admin"), ("Grid", ".grid")):
            page.locator(".place", has_text=place).click()
            expect(page.locator(shown)).to_be_visible()
            expect(page.locator(".sidebar")).not_to_be_in_viewport()
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), place
            page.get_by_role("button", name="Sessions").click()
        page.locator(".session").click()
        expect(page.locator(".bar h1")).to_be_in_viewport()


def test_the_page_works_under_a_prefix(places: Places, browser: Browser) -> None:
    with running_server(places, "--base-prefix", "/tools/wsh") as server:
        assert server.request("POST", "/tools/wsh/sessions", {"name": "deep", "command": "cat"}).status == 201
        with open_page(browser) as watched:
            watched.page.goto(str(server.request("POST", "/tools/wsh/auth/link").json["url"]))
            expect(watched.page.locator(".bar h1")).to_have_text("deep")
            assert "/tools/wsh/ui/" in watched.page.url


def test_the_page_and_its_files_need_a_sign_in_and_a_strict_policy(server: RunningServer) -> None:
    assert server.request("GET", "/ui/", token=None).status == 401
    page = server.request("GET", "/ui/")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "default-src 'none'" in policy
    asset = re.search(r"assets/[\w.-]+\.js", page.body.decode())
    assert asset is not None
    found = server.request("GET", f"/ui/{asset[0]}")
    assert found.status == 200 and "immutable" in found.headers["cache-control"]
    assert server.request("GET", "/ui/assets/nothing.js").status == 404
    assert server.request("GET", "/ui/..%2f..%2f__init__.py").status == 404


def test_the_first_load_is_small() -> None:
    html = (BUILT / "index.html").read_text()
    first = [BUILT / "index.html", *(BUILT / name for name in re.findall(r"\./(assets/[\w.-]+)", html))]
    assert len(first) >= 3
    assert sum(len(gzip.compress(path.read_bytes())) for path in first) <= 300 * 1024


def test_the_pages_tokens_are_those_of_the_one_file() -> None:
    assert (ROOT / "web" / "src" / "tokens.css").read_text() == css()


def test_the_lock_file_carries_no_addresses() -> None:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text())
    assert all("resolved" not in package for package in lock["packages"].values())


def test_what_waits_for_a_person_is_shown_with_its_end(server: RunningServer, browser: Browser) -> None:
    ask = {
        "action": "execute",
        "invocation": {"mode": "interactive", "intent": "execute_command"},
        "execution": {"command": "rm", "args": ["-r", "/usr/<b>share</b>"]},
        "runtime": {"timeout_ms": 1000, "cwd": "/usr"},
    }
    with running_desktop(server.places.desktop_info, "ignore"), open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        pending = server.request("POST", "/terminal", ask).json
        assert pending["result"]["approval"] == "pending", pending
        page.get_by_role("button", name="An agent asks").click()
        approval = page.locator(".approval", has_text="<b>share</b>")
        expect(approval).to_contain_text("rm -r '/usr/<b>share</b>'")
        expect(approval.locator(".risk")).to_have_text("destructive")
        assert approval.get_by_role("button").count() == 0, "it is answered elsewhere"
        expect(page.locator(".approvals")).to_contain_text("Approve or decline there")
        withdrawn = server.request("POST", "/terminal", {"action": "terminate", "target": pending["identity"]})
        assert withdrawn.status == 200, withdrawn
        expect(approval.locator(".verdict")).not_to_have_text("waiting")
        page.locator(".place", has_text="Server").click()
        expect(page.get_by_role("region", name="Audit entries")).to_contain_text("approval")
        expect(page.get_by_role("region", name="Rules").locator("tbody tr").first).to_be_visible()


def test_a_command_of_the_timeline_is_shown_copied_and_run_again(server: RunningServer, browser: Browser) -> None:
    make(server, "history")
    for line in ("echo one-$((1+1))", "seq 1 80", "false"):
        assert server.request("POST", "/sessions/history/run", {"input": line, "max_wait_ms": 60_000}).status == 200
    with open_page(browser, permissions=["clipboard-read", "clipboard-write"]) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".timeline code")).to_have_text(["false", "seq 1 80", "echo one-$((1+1))"])
        expect(page.locator(".timeline .code")).to_have_text(["1", "0", "0"])
        first = page.locator(".timeline li", has_text="echo one")
        first.locator("summary").click()
        page.keyboard.type("keys go where the cursor blinks")
        until(watched, lambda t: "keys go where" in t, "a click on a command leaves the keyboard in the terminal")
        page.keyboard.press("Control+U")
        expect(first.locator(".output")).to_have_text("one-2")
        first.locator(".output").click()
        page.keyboard.type("here, too")
        until(watched, lambda t: "here, too" in t, "and so does one on its output")
        page.keyboard.press("Control+U")
        first.get_by_role("button", name="Copy output").click()
        expect(page.locator(".toast")).to_contain_text("Output copied")
        assert str(page.evaluate("navigator.clipboard.readText()")).strip() == "one-2"
        first.get_by_role("button", name="Show in terminal").click()
        expect(page.locator(".single .xterm-rows")).to_contain_text("echo one-$((1+1))")
        first.get_by_role("button", name="Run again").click()
        expect(page.locator(".timeline code")).to_have_count(4)
        expect(page.locator(".timeline code").first).to_have_text("echo one-$((1+1))")
        page.wait_for_timeout(300)
        expect(page.locator(".toast.bad")).to_have_count(0)


def test_the_menu_of_a_session_closes_like_any_menu(server: RunningServer, browser: Browser) -> None:
    for name in ("one", "two"):
        make(server, name, "cat")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        menu = page.locator(".menu[open]")
        for leave in ("Escape", "outside", "another session"):
            page.locator(".menu summary").click()
            expect(menu).to_have_count(1)
            if leave == "Escape":
                page.keyboard.press("Escape")
            elif leave == "outside":
                page.locator(".bar h1").click()
            else:
                page.locator(".session", has_text="two").click()
            expect(menu).to_have_count(0)


def test_a_finger_goes_through_the_earlier_lines(server: RunningServer, browser: Browser) -> None:
    make(server, "long", "sh -c 'seq 1 300; exec cat'")
    with open_page(browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "300" in t, "the last line")
        protocol = page.context.new_cdp_session(page)
        box = page.locator(".xterm-screen").first.bounding_box()
        assert box is not None
        x, y = box["x"] + 40, box["y"] + 40

        def touch(kind: str, *points: float) -> None:
            protocol.send(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": at} for at in points]}
            )

        touch("touchStart", y)
        for step in range(1, 11):
            touch("touchMove", y + step * 20)
        touch("touchEnd")
        rows = page.locator(".xterm-rows").first
        expect(rows).not_to_contain_text("300")
        expect(rows).to_contain_text("27")
