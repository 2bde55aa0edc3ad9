"""The clipboard in a real browser: copying by selecting and by keys, programs that ask for it, and large pastes."""

from __future__ import annotations

import hashlib

from playwright.sync_api import Browser, Page, expect

from tests.support.serving import RunningServer
from tests.support.waiting import wait_for_text, wait_until
from tests.support.web.browser import open_page
from tests.web.test_page import focus_terminal, link, make, until
from tests.web.test_phone import PHONE

CLIPBOARD = ["clipboard-read", "clipboard-write"]
OSC = 'sh -c \'read x; printf "\\033]52;c;aGVsbG8gY2xpcA==\\007"; echo asked; read x; printf "\\033]52;c;c2Vjb25k\\007"; echo again; exec cat\''


def clip(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def select_row(page: Page, row: int) -> None:
    """Drag over a row of the terminal, as a mouse does."""
    box = page.locator(".single .xterm-screen").bounding_box()
    rows = page.evaluate("window.wshSize().rows")
    assert box is not None
    y = box["y"] + box["height"] * (row + 0.5) / rows
    page.mouse.move(box["x"] + 1, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, y, steps=3)
    page.mouse.move(box["x"] + box["width"] - 2, y, steps=3)
    page.mouse.up()


def click_row(page: Page, row: int, times: int) -> None:
    box = page.locator(".single .xterm-screen").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] * (row + 0.5) / page.evaluate("window.wshSize().rows")
    page.mouse.click(box["x"] + box["width"] / 2, y, click_count=times)


def test_selecting_copies_and_so_do_the_keys(server: RunningServer, browser: Browser) -> None:
    make(server, "text", "sh -c 'echo first line; echo second line; trap \"echo INT\" INT; while :; do read x; done'")
    with open_page(browser, permissions=CLIPBOARD) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "second line" in t, "the text")
        page.evaluate("navigator.clipboard.writeText('before')")
        select_row(page, 0)
        wait_for_text(lambda: clip(page), lambda t: t.strip() == "first line", "selecting copies")
        page.evaluate("navigator.clipboard.writeText('before')")
        page.keyboard.press("Control+Shift+C")
        wait_for_text(lambda: clip(page), lambda t: t.strip() == "first line", "Ctrl+Shift+C copies")
        page.evaluate("navigator.clipboard.writeText('before')")
        page.keyboard.press("Control+C")
        wait_for_text(lambda: clip(page), lambda t: t.strip() == "first line", "Ctrl+C copies what is selected")
        assert "INT" not in watched.text()
        page.keyboard.press("Control+C")
        until(watched, lambda t: "INT" in t, "Ctrl+C is the program's when nothing is selected")


def test_a_click_on_nothing_leaves_the_clipboard_alone(server: RunningServer, browser: Browser) -> None:
    make(server, "text", "sh -c 'echo; echo word; exec cat'")
    with open_page(browser, permissions=CLIPBOARD) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "word" in t, "the text")
        page.evaluate("navigator.clipboard.writeText('before')")
        for row, times in ((0, 3), (1, 2)):  # an empty line, and the blanks behind a word
            click_row(page, row, times)
            assert clip(page) == "before"
        for keys in ("Control+Shift+C", "Control+C"):
            page.keyboard.press(keys)
            assert clip(page) == "before"
        click_row(page, 1, 3)
        wait_for_text(lambda: clip(page), lambda t: t.strip() == "word", "a line with something in it")


def test_a_program_writes_the_clipboard_only_with_permission(server: RunningServer, browser: Browser) -> None:
    make(server, "asks", OSC)
    with open_page(browser, permissions=CLIPBOARD) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("asks")
        page.evaluate("navigator.clipboard.writeText('before')")
        page.keyboard.type("\n")
        until(watched, lambda t: "asked" in t, "the first wish")
        expect(page.locator(".toast", has_text="wants to put 10 characters")).to_contain_text("hello clip")
        assert clip(page) == "before"
        page.get_by_role("button", name="Always").click()
        wait_for_text(lambda: clip(page), lambda t: t == "hello clip", "what was allowed")
        page.locator(".single .emulator").click()
        page.keyboard.type("\n")
        until(watched, lambda t: "again" in t, "the second wish")
        wait_for_text(lambda: clip(page), lambda t: t == "second", "what always is allowed")


def test_a_line_over_several_rows_is_copied_as_one(server: RunningServer, browser: Browser) -> None:
    make(server, "long", "sh -c 'read x; printf \"a%0300d b%0300dc\\n\" 1 7; read x; seq 400; exec cat'")
    line = f"a{1:0300d} b{7:0300d}c"

    def copies(what: str) -> None:
        """Three clicks take the line and two take one of its words, wherever it wraps."""
        page.evaluate("navigator.clipboard.writeText('before')")
        click_row(page, 2, 3)
        wait_for_text(lambda: clip(page), lambda t: t == line, f"{what}, three clicks")
        click_row(page, 2, 2)
        wait_for_text(lambda: clip(page), lambda t: t == line.split()[0], f"{what}, two clicks")

    with open_page(browser, permissions=CLIPBOARD) as watched:
        page = watched.page
        page.goto(link(server))
        expect(page.locator(".bar h1")).to_have_text("long")
        page.locator(".single .emulator").click()
        page.keyboard.type("\n")
        until(watched, lambda t: line in t.replace("\n", ""), "the line as it is printed")
        copies("the line as it was printed")
        page.reload()
        until(watched, lambda t: line in t.replace("\n", ""), "the line in a whole picture")
        copies("the line in a whole picture")
        page.keyboard.type("\n")
        until(watched, lambda t: "400" in t, "lines enough for it to scroll off")
        page.keyboard.press("Shift+Home")
        copies("the line that scrolled off")
        page.reload()
        until(watched, lambda t: "400" in t, "the picture again")
        page.locator(".single .emulator").click()
        page.keyboard.press("Shift+Home")
        copies("the line among earlier ones")


PASTE = """times => {
  const data = new DataTransfer();
  data.setData('text', '0123456789abcde\\n'.repeat(times));
  document.querySelector('.single .xterm-helper-textarea')
    .dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def test_a_large_paste_shows_how_far_it_is_and_can_be_stopped(server: RunningServer, browser: Browser) -> None:
    slow = "sh -c 'stty raw -echo; echo ready; head -c 100000 >/dev/null; read x < /dev/null; sleep 600'"
    make(server, "slow", slow)
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "ready" in t, "the program")
        page.evaluate(PASTE, 3 << 16)
        page.get_by_role("button", name="Paste", exact=True).click()
        expect(page.get_by_role("progressbar", name="Paste")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".toast", has_text="Pasting")).to_contain_text("%")


def test_a_large_paste_arrives_whole(server: RunningServer, browser: Browser) -> None:
    make(server, "count", "sh -c 'stty raw -echo; echo ready; head -c 3145728 | md5sum; exec cat'")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "ready" in t, "the program")
        page.evaluate(PASTE, 3 << 16)
        page.get_by_role("button", name="Paste", exact=True).click()
        wanted = hashlib.md5(b"0123456789abcde\r" * (3 << 16)).hexdigest()
        until(watched, lambda t: wanted in t, "every byte in order")
        wait_until(lambda: page.get_by_role("progressbar").count() == 0, "the end of the progress")


KEYS = "a\x03b\x04c\x1b[201~d\x15e\x7ff\x9b201~g\x9bAh\x1b[20\x1b[201~1~i\r\nj\nk"
HARMLESS = "a b cd e fg Ahi\rj\rk"
PASTE_TEXT = """text => {
  const data = new DataTransfer();
  data.setData('text/plain', text);
  document.querySelector('.single .xterm-helper-textarea')
    .dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
}"""


def test_no_paste_presses_a_key_or_ends_itself(server: RunningServer, browser: Browser) -> None:
    large = "x" * (1 << 18)
    sent = f"\x1b[200~{HARMLESS}\x1b[201~" * 2 + f"\x1b[200~{HARMLESS}{large}\x1b[201~"
    script = f'stty raw -echo; printf "\\033[?2004hready"; head -c {len(sent)} | md5sum; exec cat -v'
    make(server, "raw", f"sh -c '{script}'")
    with open_page(browser, permissions=CLIPBOARD) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "ready" in t, "the program")
        page.evaluate("text => navigator.clipboard.writeText(text)", KEYS)
        focus_terminal(page)
        page.keyboard.press("Control+Shift+V")
        page.evaluate(PASTE_TEXT, KEYS)
        page.evaluate(PASTE_TEXT, KEYS + large)
        page.get_by_role("button", name="Paste", exact=True).click()
        until(watched, lambda t: hashlib.md5(sent.encode()).hexdigest() in t, "three pastes")


def test_a_shell_runs_nothing_of_a_paste(server: RunningServer, browser: Browser) -> None:
    make(server, "shell")
    with open_page(browser) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "$" in t, "the prompt")
        page.evaluate(PASTE_TEXT, "echo safe \x03echo e''vil\necho re''st")
        until(watched, lambda t: "re''st" in t, "the paste")
        page.keyboard.type(" \n")
        text = until(watched, lambda t: "\nrest" in t, "what was pasted, when Enter was pressed")
        assert "safe echo evil" in text and "\nevil" not in text


def test_what_is_pasted_into_the_line_that_is_composed_presses_no_key(server: RunningServer, browser: Browser) -> None:
    make(server, "raw", "sh -c 'stty raw -echo; echo ready; exec cat -v'")
    with open_page(browser, permissions=CLIPBOARD, **PHONE) as watched:
        page = watched.page
        page.goto(link(server))
        until(watched, lambda t: "ready" in t, "the program")
        field = page.get_by_label("A line to send")
        field.fill("one\x03two\x1b[201~")
        expect(field).to_have_value("one two")
        page.get_by_role("button", name="Send").tap()
        until(watched, lambda t: "one two^M" in t, "the line")
