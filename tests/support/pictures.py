"""`make pictures`: the pictures in docs, made from the real program, so that they are never stale.

Starts a server and a window in folders of their own, puts sessions and requests into them, and takes pictures of page and window.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, expect

from tests.support.bridge.program import running_desktop
from tests.support.desktop.window import Asking, Desk, desk, execute, virtual_screen
from tests.support.serving import RunningServer, running_server
from tests.support.web.browser import chromium, own_page
from wsh.wire.system.place import find_places
from wsh.wire.token_file import TokenFile

OUT = Path(__file__).parents[2] / "docs" / "pictures"


WATCH = r"""
while :; do
  printf '\033[H\033[J\033[1mservice      state     load\033[0m\n'
  for name in web worker queue mail search; do
    n=$(( ($(date +%s) * ${#name}) % 20 + 1 ))
    printf '%-12s \033[32mup\033[0m        \033[36m%s\033[0m\n' "$name" "$(printf '%*s' $n '' | tr ' ' '|')"
  done
  printf 'backup       \033[31mdown\033[0m\n'
  sleep 2
done
"""


def main() -> None:
    """All of them, or those named on the command line: page, phone, window, terminal."""
    OUT.mkdir(exist_ok=True)
    wanted = set(sys.argv[1:]) or {"page", "phone", "window", "terminal"}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for name, variable in (("r", "XDG_RUNTIME_DIR"), ("s", "XDG_STATE_HOME"), ("c", "XDG_CONFIG_HOME")):
            (root / name).mkdir(mode=0o700)
            os.environ[variable] = str(root / name)
        project = _make_project(root)
        places = find_places()
        places.config_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        places.config_file.write_text("[approvals]\nweb = true\n")
        with running_server(places, check_left=False) as server:
            _fill(server, project)
            if "page" in wanted:
                with chromium() as browser:
                    take_pages(server, browser)
                    for theme in ("dark", "light"):
                        with running_desktop(places.desktop_info, "ignore", page_answers=True):
                            take_approvals(server, browser, theme, project)
            if "phone" in wanted:
                with chromium() as browser:
                    take_phone(server, browser, project)
            if "terminal" in wanted:
                with virtual_screen("820x520x24") as display:
                    take_terminals(server, display, project)
        for theme in ("dark", "light") if "window" in wanted else ():
            with (
                virtual_screen("1180x760x24") as display,
                desk(places, display, "--theme", theme) as window,
                running_server(places, check_left=False) as server,
            ):
                if theme == "dark":
                    _fill(server, project)
                take_windows(server, window, theme, project)


def _make_project(root: Path) -> Path:
    project = root / "demo"
    project.mkdir()
    (project / "app.py").write_text('def greet(name):\n    return f"Hello, {name}"\n\n\nprint(greet("world"))\n' * 6)
    (project / "Makefile").write_text("test:\n\t@for n in 1 2 3 4 5; do echo test $$n ok; done\n")
    (project / "watch.sh").write_text(WATCH)
    return project


def _fill(server: RunningServer, project: Path) -> None:
    env = {"PS1": "\\[\\e[32m\\]demo\\[\\e[0m\\] $ "}
    for name, command, tags in (
        ("build", "bash --norc", ["ci"]),
        ("editor", "vim -u NONE -N app.py", ["agent"]),
        ("monitor", "sh watch.sh", []),
        ("release", "sh -c 'echo publishing; exit 3'", ["ci"]),
    ):
        body = {"name": name, "command": command, "cwd": str(project), "env": env, "tags": tags}
        assert server.request("POST", "/sessions", body).status == 201
    agent = TokenFile(server.places.tokens).add_agent("coder")
    for line, who in (
        ("ls --color=always -l", ""),
        ("make test", agent),
        ("python3 app.py | tail -3", agent),
        ("grep -rn nothing-here .", ""),
    ):
        server.request("POST", "/sessions/build/run", {"input": line, "timeout_ms": 500}, token=who)


def take_pages(server: RunningServer, browser: Browser) -> None:
    for theme in ("dark", "light"):
        with own_page(browser, color_scheme=theme, viewport={"width": 1280, "height": 780}) as watched:
            page = watched.page
            page.goto(str(server.request("POST", "/auth/link").json["url"]))
            page.wait_for_selector(".timeline li")
            page.wait_for_timeout(1500)
            page.locator(".timeline summary").nth(2).click()
            page.wait_for_timeout(700)
            _keep(page, f"page-single-{theme}")
            if theme == "dark":
                page.keyboard.press("Alt+g")
                page.wait_for_timeout(1800)
                _keep(page, "page-grid")
                _split(page)
                page.locator(".session").first.click()
                page.wait_for_timeout(600)
                page.locator(".menu summary").click()
                page.get_by_role("button", name="Replay").click()
                expect(page.get_by_label("Time")).not_to_have_attribute("max", "0")
                longest = float(page.evaluate("document.querySelector('.scrubber input').max"))
                page.get_by_label("Time").fill(str(longest * 0.6))
                page.wait_for_timeout(600)
                _keep(page, "page-replay")
                page.keyboard.press("Control+Backslash")
                page.keyboard.press("k")
                page.wait_for_selector(".palette")
                _keep(page, "page-palette")
                page.keyboard.press("Escape")
                page.locator(".place", has_text="Search").click()
                page.get_by_label("Search terminals, transcripts and code").fill("hello world")
                page.keyboard.press("Enter")
                page.get_by_role("button", name="Index this folder").click()
                expect(page.get_by_label("Files", exact=True).locator(".hit").first).to_be_visible(timeout=30_000)
                page.wait_for_timeout(300)
                _keep(page, "page-search")
                page.locator(".place", has_text="Server").click()
                page.wait_for_selector(".scroll tbody tr")
                _keep(page, "page-server")
    phone = {"viewport": {"width": 390, "height": 760}, "is_mobile": True, "has_touch": True, "color_scheme": "dark"}
    with own_page(browser, **phone) as watched:
        watched.page.goto(str(server.request("POST", "/auth/link").json["url"]))
        watched.page.wait_for_selector(".bar h1")
        watched.page.wait_for_timeout(1500)
        _keep(watched.page, "page-phone")


def _split(page: Page) -> None:
    page.locator(".session").first.click()
    for key, name in (("|", "editor"), ("_", "monitor")):
        page.keyboard.press("Control+Backslash")
        page.keyboard.type(key)
        page.locator(".chooser li button", has_text=name).click()
        page.wait_for_timeout(800)
    page.keyboard.press("Control+Backslash")
    page.keyboard.press("o")
    page.wait_for_timeout(600)
    _keep(page, "page-split")
    for _ in range(2):
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("o")
        page.keyboard.press("Control+Backslash")
        page.keyboard.press("x")


def take_phone(server: RunningServer, browser: Browser, project: Path) -> None:
    """A request as a phone shows it, what it printed, and the inbox."""
    question = {"name": "deploy", "command": "sh -c 'printf \"Deploy to production? [y/N] \"; read answer'"}
    assert server.request("POST", "/sessions", question).status == 201
    runtime = {"cwd": str(project), "timeout_ms": 15_000}
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "color_scheme": "dark"}
    with own_page(browser, device_scale_factor=2, **phone) as watched:
        page = watched.page
        page.goto(str(server.request("POST", "/auth/link").json["url"]))
        asked = Asking(server, {**execute("make", "test"), "runtime": runtime})
        page.locator(".asks").tap()
        expect(page.locator(".approval:not(.over) .choices")).to_be_visible()
        expect(page.locator(".inbox")).to_contain_text("Deploy")
        page.locator(".approval:not(.over)").evaluate("(card) => card.scrollIntoView({ block: 'start' })")
        page.wait_for_timeout(400)
        _keep(page, "phone")
        page.get_by_role("button", name="Run once").tap()
        expect(page.locator(".approval.over").first.get_by_label("Output")).to_contain_text("test 5 ok")
        page.locator(".queue").evaluate("(list) => list.scrollTo(0, 0)")
        page.wait_for_timeout(400)
        _keep(page, "phone-inbox")
        asked.answer()


def take_approvals(server: RunningServer, browser: Browser, theme: Literal["dark", "light"], project: Path) -> None:
    """What agents ask for, with an answer at hand."""
    cwd = {"cwd": str(project), "timeout_ms": 15_000}
    push = execute("git", "push", "origin", "main")
    push["execution"]["env"] = {"GIT_TERMINAL_PROMPT": "0"}
    with own_page(browser, color_scheme=theme, viewport={"width": 1280, "height": 780}) as watched:
        page = watched.page
        page.goto(str(server.request("POST", "/auth/link").json["url"]))
        asked = [Asking(server, {**push, "runtime": cwd})]
        expect(page.locator(".asks")).to_be_visible()
        asked.append(Asking(server, {**execute("rm", "-rf", "build", "dist"), "runtime": cwd}))
        page.locator(".asks").click()
        expect(page.locator(".approval:not(.over) .choices")).to_have_count(2)
        page.wait_for_timeout(300)
        _keep(page, "page-approval" if theme == "dark" else "page-approval-light")
        for left in (1, 0):
            page.get_by_role("button", name="Decline", exact=True).last.click()  # the upper one stays where it is
            expect(page.locator(".approval:not(.over)")).to_have_count(left)
        for one in asked:
            one.answer()


def _keep(page: Page, name: str) -> None:
    page.screenshot(path=str(OUT / f"{name}.png"))


def take_windows(server: RunningServer, window: Desk, theme: str, project: Path) -> None:
    cwd = {"cwd": str(project), "timeout_ms": 90_000}
    first = Asking(server, {**execute("git", "push", "origin", "main"), "runtime": cwd})
    window.wait_for_pending(1)
    second = Asking(server, {**execute("rm", "-rf", "build"), "runtime": cwd})
    window.wait_for_pending(2)
    time.sleep(1.0)
    window.picture(OUT / f"window-queue-{theme}.png")
    if theme == "light":
        _decline(window, 2, first, second)
        return
    _decline(window, 2, first, second)
    third = Asking(
        server,
        {**execute("vim", "-n", "-u", "NONE", "-N", "app.py", timeout_ms=4000), "runtime": {**cwd, "timeout_ms": 4000}},
    )
    window.wait_for_pending(1)
    window.press("ctrl+Return")
    third.answer()
    time.sleep(1.5)
    window.picture(OUT / "window-terminal.png")
    for key, name in (("ctrl+3", "history"), ("ctrl+4", "settings"), ("alt+2", "limits")):
        window.press(key)
        time.sleep(0.8)
        window.picture(OUT / f"window-{name}.png")


def take_terminals(server: RunningServer, display: str, project: Path) -> None:
    """wsh attach in a real emulator: an overlay over vim, a panel over htop, and captured keys."""
    wsh = f"{sys.executable} -m wsh.cli.main attach"
    note = {
        "x": 24,
        "y": 5,
        "width": 40,
        "height": 4,
        "background": "blue",
        "spans": [{"text": " Agent: ", "bold": True}, {"text": "line 7 shadows a builtin.\n May I rename it?  y / n"}],
    }
    panel = {
        "position": "bottom",
        "height": 2,
        "background": "#20303f",
        "spans": [{"text": " build 42 % · 3 tests failed\n"}, {"text": " watching the services"}],
    }
    for session, path, body, name in (
        ("editor", "overlay", note, "overlay"),
        ("monitor", "panel", panel, "panel"),
        ("build", "overlay", {**note, "x": 4, "focusable": True}, "capture"),
    ):
        made = server.request("POST", f"/sessions/{session}/{path}", body).json
        if name == "capture":
            server.request("POST", f"/sessions/{session}/input/capture", {})
        command = [
            "xterm",
            "-geometry",
            "100x30+0+0",
            "-fa",
            "DejaVu Sans Mono",
            "-fs",
            "10",
            "-bg",
            "#101216",
            "-fg",
            "#dfe3ea",
        ]
        shown = subprocess.Popen([*command, "-e", *wsh.split(), session], env={**os.environ, "DISPLAY": display})
        time.sleep(5)
        environ = {**os.environ, "DISPLAY": display}
        subprocess.run(
            ["import", "-window", "root", str(OUT / f"terminal-{name}.png")], env=environ, check=True, timeout=30
        )
        shown.terminate()
        shown.wait(10)
        server.request("DELETE", f"/sessions/{session}/{path}/{made['id']}")


def _decline(window: Desk, count: int, *asking: Asking) -> None:
    for left in reversed(range(count)):
        window.press("ctrl+BackSpace")
        window.wait_for_pending(left)
    for each in asking:
        each.answer()


if __name__ == "__main__":
    if shutil.which("chromium") is None or shutil.which("Xvfb") is None:
        sys.exit("make pictures needs Debian's chromium and xvfb")
    main()
