"""Pages of `wsh attach` in a real terminal: help, earlier lines with search and copying, the list of sessions; and the last session."""

from __future__ import annotations

import base64
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable

import pytest

from tests.support.pane import WSH, Pane, make, read_until
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until
from tests.support.warm import run_warm
from wsh.wire.system.place import Places


def attach(server: RunningServer, pane: Callable[..., Pane], name: str, rows: int = 12, cols: int = 80) -> Pane:
    make(server, name, rows=rows - 1, cols=cols)
    seen = pane(f"{WSH} attach {name}", rows, cols)
    seen.wait(lambda t: t.startswith("$") and "? help" in t.splitlines()[-1], "the prompt and the status line")
    return seen


def open_lines(server: RunningServer, pane: Callable[..., Pane], name: str, lines: int = 200) -> Pane:
    """A session that has printed `line 1` to `line N`, with its earlier lines open."""
    seen = attach(server, pane, name)
    seen.type(f"seq -f 'line %g of many' {lines}", "Enter")
    seen.wait(lambda t: f"line {lines} of many\n$" in t, "the last line")
    seen.type("C-\\")
    seen.wait(lambda t: "[ scroll" in last_row(t), "the hint")
    seen.type("[")
    seen.wait(lambda t: "q back" in last_row(t), "the earlier lines")
    return seen


def last_row(text: str) -> str:
    return text.splitlines()[-1].strip()


def cursor(seen: Pane) -> tuple[int, int]:
    row, col = seen._run("display-message", "-p", "#{cursor_y} #{cursor_x}").split()
    return int(row), int(col)


def test_help_explains_every_key_and_any_key_goes_back(server: RunningServer, pane: Callable[..., Pane]) -> None:
    seen = attach(server, pane, "helped", rows=40)
    seen.type("C-\\", "?")
    text = seen.wait(lambda t: "any key goes back" in last_row(t), "the help")
    for said in ("d        leave", "[        earlier lines", "keys of vi", "y Enter", "attach.keys"):
        assert said in text
    assert "Alt+W" not in text and "Ctrl+S" not in text, "the keys of emacs are not those that were chosen"
    seen.type("x")
    seen.wait(lambda t: t.startswith("$") and "helped ·" in last_row(t), "the session")
    assert "x" not in seen.text().splitlines()[0], "the key was for the page"
    seen.resize(8, 40)
    seen.type("C-\\", "?")
    seen.wait(lambda t: "up and down scroll" in last_row(t), "the help in a small terminal")
    seen.type("Down", "Down")
    seen.wait(lambda t: "this page" in t.splitlines()[0], "a lower part")
    seen.type("q")
    seen.wait(lambda t: "helped ·" in last_row(t), "the session")


def test_earlier_lines_with_the_keys_of_vi(server: RunningServer, pane: Callable[..., Pane]) -> None:
    seen = open_lines(server, pane, "vi")
    seen.type("g")
    seen.wait(lambda t: "line 10 of many" in t and last_row(t).startswith("1/"), "the first lines")
    seen.type("G")
    seen.wait(lambda t: "line 200 of many" in t, "the last lines")
    seen.type("?", "line 42 ", "Enter")
    seen.wait(lambda t: "line 42 of many" in t, "what was searched")
    row = next(i for i, line in enumerate(seen.text().splitlines()) if line == "line 42 of many")
    wait_until(lambda: cursor(seen) == (row, 0), "the cursor there", seen=lambda: (cursor(seen), seen.text()))
    seen.type("/", "LINE 1", "Enter")
    seen.wait(lambda t: "not found" in last_row(t), "that capitals count")
    seen.type("/", "line 150", "Enter")
    seen.wait(lambda t: "line 150 of many" in t, "what was searched")
    seen.type("?", "line 1", "Enter", "n", "n")
    seen.wait(lambda t: "line 147 of many" in t, "the search again")
    seen.type("/", "^LINE 1?[45]5 ", "Enter")
    seen.wait(lambda t: "not found" in last_row(t), "that capitals count in an expression")
    seen.type("g", "/", r"^line 1?[45]5\s\S", "Enter")
    seen.wait(lambda t: "line 45 of many" in t and "match 1 of 4" in last_row(t), "an expression, and its count")
    seen.type("N")
    seen.wait(lambda t: "match 4 of 4 · searched on from the last line" in last_row(t), "the other way round")
    seen.type("N")
    seen.wait(lambda t: "line 145 of many" in t and "match 3 of 4" in last_row(t), "the one before")
    seen.type("/", "many(", "Enter")
    seen.wait(lambda t: "not found · searched as plain text" in last_row(t), "what is no expression")
    seen.type("q")
    seen.wait(lambda t: "line 200 of many\n$" in t and "vi ·" in last_row(t), "the session")
    seen.type("echo ba''ck", "Enter")
    seen.wait(lambda t: "\nback\n" in t, "keys reach the program")


def test_help_and_the_list_of_sessions_go_back_to_the_place_among_earlier_lines(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    seen = open_lines(server, pane, "place")
    seen.type("g")

    def is_there(text: str) -> bool:
        return "line 10 of many" in text and last_row(text).startswith("1/")

    seen.wait(is_there, "the first lines")
    seen.type("C-\\", "?")
    seen.wait(lambda t: "line 10 of many" not in t and "Ctrl+\\" in t, "the help")
    seen.type("q")
    seen.wait(is_there, "the place again")
    seen.type("C-\\", "s")
    seen.wait(lambda t: "go to:" in last_row(t), "the list")
    seen.type("C-c")
    seen.wait(is_there, "the place again")
    seen.type("C-\\", "Z")
    seen.wait(lambda t: "no such key: Z" in last_row(t) and "line 10 of many" in t, "what the key is not")
    seen.type("M-x", "j")
    seen.wait(lambda t: last_row(t).startswith("2/"), "a key with Alt that means nothing, and one that moves")
    seen.type("q")
    seen.wait(lambda t: "line 200 of many\n$" in t and "place ·" in last_row(t), "the session")


def test_earlier_lines_stay_where_they_are_while_more_is_printed_and_all_of_it_is_in_the_scrollback(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    seen = open_lines(server, pane, "stays", 30)
    seen.type("g")
    before = seen.wait(lambda t: "line 10 of many" in t and "1/32" in last_row(t).split(), "the first lines")
    server.request("POST", "/sessions/stays/input", b"seq -f 'later %g' 40\r")
    server.get("/sessions/stays/idle?text=later%2040&timeout_ms=100&last_generation=0")
    assert seen.text() == before
    seen.type("Escape")
    seen.wait(lambda t: "later 40\n$" in t, "the session")

    def later() -> list[str]:
        lines = seen.text(history=True).splitlines()
        return [line for line in lines if line.startswith("later ")]

    seen.wait(lambda _: later() == [f"later {n}" for n in range(1, 41)], "every line once")


def test_a_key_moves_by_emacs_where_the_setting_says_so(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "emacs", rows=11, cols=80)
    seen = pane(f"WSH_ATTACH_COPY_KEYS=emacs {WSH} attach emacs", 12, 80)
    seen.wait(lambda t: t.startswith("$"), "the prompt")
    seen.type("seq -f 'line %g of many' 100", "Enter")
    seen.wait(lambda t: "line 100 of many\n$" in t, "the last line")
    seen.type("C-\\", "?")
    text = seen.wait(lambda t: "up and down scroll" in last_row(t), "the help")
    seen.type("PageDown")
    text += seen.wait(lambda t: "keys of emacs" in t, "more of it")
    seen.type("PageDown")
    text += seen.wait(lambda t: "Ctrl+G" in t, "the rest of it")
    assert "Alt+W" in text and "h j k l" not in text
    seen.type("q")
    seen.wait(lambda t: "emacs ·" in last_row(t), "the session")
    seen.type("C-\\", "[")
    seen.wait(lambda t: "Ctrl+G back" in last_row(t), "the earlier lines")
    seen.type("M-<")
    seen.wait(lambda t: "line 5 of many" in t, "the first lines")
    seen.type("C-n", "C-f", "C-f")
    wait_until(lambda: cursor(seen) == (1, 2), "the cursor", seen=lambda: cursor(seen))
    seen.type("C-e")
    wait_until(lambda: cursor(seen)[1] > 5, "the end of the line", seen=lambda: cursor(seen))
    seen.type("C-s", "line 77", "Enter")
    seen.wait(lambda t: "line 77 of many" in t, "what was searched")
    seen.type("C-g")
    seen.wait(lambda t: "emacs ·" in last_row(t), "the session")


def open_pty(*words: str, rows: int = 12, cols: int = 80) -> tuple[int, int]:
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        os.execvp(sys.executable, [*WSH.split(), *words])
    return pid, fd


def test_selected_text_goes_to_the_clipboard_of_the_terminal(server: RunningServer) -> None:
    make(server, "copied", "printf 'one\\ntwo words\\n漢字 three\\n'; exec cat", rows=11, cols=80)
    pid, fd = open_pty("attach", "copied")
    try:
        read_until(fd, lambda seen: b"three" in seen and b"? help" in seen, b"")

        def copy(keys: bytes) -> str:
            os.write(fd, b"\x1c[")
            read_until(fd, lambda seen: b"q back" in seen, b"")
            os.write(fd, keys)
            shown = read_until(fd, lambda seen: b"\x1b]52;c;" in seen and b"copied" in seen, b"")
            data = shown.partition(b"\x1b]52;c;")[2].partition(b"\x1b\\")[0]
            return base64.b64decode(data).decode()

        assert copy(b"gvjey") == "one\ntwo"
        assert copy(b"gjVjy") == "two words\n漢字 three\n"
        assert copy(b"gjjv\x1b[C\x1bw") == "漢字", "with a key of emacs"
        assert copy(b"\x1b[<0;3;3M\x1b[<32;8;3M\x1b[<0;8;3m") == "字 thr", "with the mouse"
        os.write(fd, b"\x1c\x1c")
        read_until(fd, lambda seen: b"[detached" in seen, b"")
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


def test_a_line_that_the_screen_broke_is_copied_and_found_as_one(server: RunningServer) -> None:
    made = 'printf "%070d\\n" 1; echo $(printf "abcdefghi %.0s" 1 2 3 4 5 6 7 8 9); echo end; exec cat'
    make(server, "broken", made, rows=11, cols=70)
    pid, fd = open_pty("attach", "broken")
    try:
        read_until(fd, lambda seen: b"end" in seen and b"? help" in seen, b"")

        def copy(keys: bytes) -> str:
            os.write(fd, b"\x1c[")
            read_until(fd, lambda seen: b"q back" in seen, b"")
            os.write(fd, keys)
            shown = read_until(fd, lambda seen: b"\x1b]52;c;" in seen and b"copied" in seen, b"")
            return base64.b64decode(shown.partition(b"\x1b]52;c;")[2].partition(b"\x1b\\")[0]).decode()

        whole = " ".join(["abcdefghi"] * 9) + "\n"
        assert copy(b"gVy") == f"{1:070}\n", "it fills the row and does not go on"
        assert copy(b"gjVy") == copy(b"gjjVy") == whole, "it was broken at a blank"
        assert copy(b"g/hi abc\r6nvj0llly") == "hi abcd", "across the end of the row"
        os.write(fd, b"\x1c\x1c")
        read_until(fd, lambda seen: b"[detached" in seen, b"")
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


def test_a_page_takes_the_mouse_and_the_program_gets_its_modes_back(server: RunningServer) -> None:
    make(server, "modes", "printf '\\033[?1003h\\033[?1006h\\033[=5;1u'; exec cat -v", rows=11, cols=80)
    pid, fd = open_pty("attach", "modes")
    try:
        read_until(fd, lambda seen: b"\x1b[=5;1u" in seen and b"? help" in seen, b"")
        os.write(fd, b"\x1b[92;5u\x1b[91u")
        shown = read_until(fd, lambda seen: b"q back" in seen, b"")
        shown = read_until(fd, lambda seen: b"\x1b[?1002h" in seen and b"\x1b[=0;1u" in seen, shown)
        os.write(fd, b"q")
        read_until(fd, lambda seen: b"\x1b[?1003h" in seen and b"\x1b[=5;1u" in seen, b"")
        os.write(fd, b"\x1b[<35;5;3M")
        read_until(fd, lambda seen: b"^[[<35;5;3M" in seen, b"")
        os.write(fd, b"\x1b[92;5u\x1b[100u")
        read_until(fd, lambda seen: b"[detached" in seen, b"")
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


def test_another_session_is_chosen_from_the_list(server: RunningServer, pane: Callable[..., Pane]) -> None:
    for name in ("apple", "banana"):
        make(server, name, f"echo this is {name}; exec cat")
    seen = attach(server, pane, "first")
    seen.type("C-\\", "s")
    text = seen.wait(lambda t: "go to:" in last_row(t), "the list")
    assert all(name in text for name in ("* first", "apple", "banana"))
    seen.type("a")
    text = seen.wait(lambda t: "go to: a" in last_row(t) and t.startswith("  apple"), "the name that begins so first")
    assert text.splitlines()[1].startswith("  banana"), "and then the one that has it"
    seen.type("C-u", "bana")
    seen.wait(lambda t: "go to: bana" in last_row(t) and "apple" not in t, "fewer sessions")
    seen.type("Enter")
    seen.wait(lambda t: "this is banana" in t and "banana ·" in last_row(t), "the other session")
    wait_until(lambda: server.get("/sessions/first")["clients"] == 0, "that the first is left")
    seen.type("C-\\", "s")
    seen.wait(lambda t: "go to:" in last_row(t), "the list")
    seen.type("Escape")
    seen.wait(lambda t: "banana ·" in last_row(t), "the session again")
    seen.type("C-\\", "C-\\")
    seen.wait(lambda t: "[detached · banana]" in t, "the way out")
    # and without a name it is the last one
    again = pane(f"{WSH} attach")
    again.wait(lambda t: "this is banana" in t, "the last session")
    server.request("PATCH", "/sessions/banana", {"name": "cherry"})
    again.wait(lambda t: "cherry ·" in last_row(t), "the new name")
    again.type("C-d")
    again.wait(lambda t: "[exited 0 · cherry]" in t, "the end of the session")
    # and when that has ended, it is the one before
    before = pane(f"{WSH} attach")
    before.wait(lambda t: "first ·" in last_row(t), "the session before")
    before.type("C-\\", "d")
    before.wait(lambda t: "[detached · first]" in t, "the way out")


def test_who_chooses_a_session_that_is_gone_stays_and_is_told(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "fleeting")
    seen = attach(server, pane, "staying")
    seen.type("C-\\", "s")
    seen.wait(lambda t: "fleeting" in t and "go to:" in last_row(t), "the list")
    assert server.request("DELETE", "/sessions/fleeting").status == 204
    seen.type("flee", "Enter")
    seen.wait(lambda t: "There is no session named 'fleeting'." in last_row(t), "the reason")
    seen.type("echo $((40+2))", "Enter")
    seen.wait(lambda t: "\n42\n" in t and "staying ·" in last_row(t), "the session that was there before")


def test_without_a_name_and_without_a_last_one_it_is_the_session_used_last(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    none = run_warm([*WSH.split(), "attach"], stdin=subprocess.DEVNULL, text=True)
    assert none.returncode == 2 and "There is no session to attach to" in none.stderr

    def shows(name: str, text: str, times: int) -> bool:
        return str(server.get(f"/sessions/{name}/screen?format=plain")["lines"]).count(text) == times

    for name in ("older", "newer"):
        make(server, name, f"echo this is {name}; exec cat")
        wait_until(lambda name=name: shows(name, "this is", 1), f"what {name} prints")  # type: ignore[misc]
    server.request("POST", "/sessions/older/input", b"used\r")
    wait_until(lambda: shows("older", "used", 2), "the echo, and the line of cat")
    seen = pane(f"{WSH} attach")
    seen.wait(lambda t: "this is older" in t, "the session used last")


def test_earlier_lines_of_a_session_that_is_wider_than_the_terminal_follow_the_cursor(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    make(server, "wide", "printf '%90s\\n' far; exec cat", rows=20, cols=100)
    seen = pane(f"{WSH} attach wide", 8, 40)
    seen.wait(lambda t: "? help" in last_row(t) or "of 100×20" in last_row(t), "the session")
    seen.type("C-\\", "[")
    seen.wait(lambda t: "/ ? search" in last_row(t), "the earlier lines")
    seen.type("g", "$")
    seen.wait(lambda t: "far" in t.splitlines()[0], "the end of the line")
    seen.type("0")
    seen.wait(lambda t: "far" not in t, "its beginning")
    info = server.get("/sessions/wide")
    assert (info["rows"], info["cols"]) == (20, 100)


@pytest.mark.usefixtures("no_supervisor")
def test_a_page_and_its_keys_outlive_the_server(pane: Callable[..., Pane], places: Places) -> None:
    with running_server(places) as mortal:
        seen = open_lines(mortal, pane, "outlived", 30)
        seen.type("?", "line 7", "Enter")
        seen.wait(lambda t: "line 7 of many" in t, "what was searched")
        mortal.process.kill()
        mortal.process.wait()
        seen.wait(lambda t: last_row(t).startswith("8/32"), "the page again")
        seen.type("g", "j", "j")
        seen.wait(lambda t: last_row(t).startswith("3/32"), "the keys' own page")
        seen.type("q")
        seen.wait(lambda t: "outlived ·" in last_row(t) and t.splitlines()[10].startswith("$"), "the session")
        assert seen.text().splitlines()[10] == "$", "no key of the page reached the program"
        seen.type("C-\\")
        seen.wait(lambda t: "d detach" in last_row(t), "the hint")
        run_warm([*WSH.split(), "stop"], check=True)


def test_a_person_may_leave_while_there_is_no_server(pane: Callable[..., Pane], places: Places) -> None:
    with running_server(places, check_left=False) as mortal:
        make(mortal, "left")
        seen = pane(f"{WSH} attach left")
        seen.wait(lambda t: t.startswith("$"), "the prompt")
        mortal.process.kill()
        mortal.process.wait()
        seen.wait(lambda t: "the server is gone" in last_row(t), "that the server is gone")
        seen.type("C-\\", "C-\\")
        seen.wait(lambda t: "[detached · left]" in t and "status 0" in t, "the way out")
        run_warm([*WSH.split(), "stop"], check=True)


def test_a_session_is_not_shown_inside_of_itself(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "mirror")
    make(server, "beside", "echo this is beside; exec cat")
    server.request("POST", "/sessions/mirror/input", f"{WSH} attach mirror\r".encode())
    found = wait_until(
        lambda: [
            line for line in server.get("/sessions/mirror/screen?format=plain")["lines"] if "inside of itself" in line
        ],
        "the refusal",
    )
    assert found
    server.request("POST", "/sessions/mirror/input", f"clear; {WSH} attach beside\r".encode())
    # Before there is a picture of it, the cursor may be in the last row, and the view would follow it down.
    wait_until(
        lambda: "this is beside" in server.get("/sessions/mirror/screen?format=plain")["lines"][0], "beside in mirror"
    )
    seen = pane(f"{WSH} attach mirror")
    seen.wait(lambda t: "this is beside" in t, "a session inside of another")


def test_a_session_that_has_ended_is_read_searched_and_copied_from(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    make(server, "over", "seq -f 'line %g of many' 100; exit 3", rows=11, cols=80)
    wait_until(lambda: not server.get("/sessions/over")["running"], "its end")
    seen = pane(f"{WSH} attach over", 12, 80)
    text = seen.wait(lambda t: "over has ended with status 3 · q leaves" in last_row(t), "that it has ended")
    assert "line 100 of many" in text
    seen.type("x")
    seen.wait(lambda t: "over has ended, nothing can be typed" in last_row(t), "why a key does nothing")
    seen.type("PageUp")
    seen.wait(lambda t: "line 85 of many" in t and "q back" in last_row(t), "earlier lines")
    seen.type("?", "line 1. ", "Enter")
    seen.wait(lambda t: "line 19 of many" in t and "match 10 of 10" in last_row(t), "a search")
    seen.type("q")
    seen.wait(lambda t: "line 100 of many" in t and "over has ended with status 3" in last_row(t), "its last screen")
    seen.type("C-\\", "t")
    seen.wait(lambda t: "can only be read" in last_row(t), "that nobody takes it over")
    # The list of sessions leads to another one, and back to this.
    make(server, "alive", "echo this is alive; exec cat")
    seen.type("s")
    seen.wait(lambda t: "go to:" in last_row(t) and "exited 3" in t, "the list")
    seen.type("alive", "Enter")
    seen.wait(lambda t: "this is alive" in t and "alive ·" in last_row(t), "the other session")
    seen.type("C-\\", "s")
    seen.wait(lambda t: "go to:" in last_row(t), "the list")
    seen.type("over", "Enter")
    seen.wait(lambda t: "over has ended with status 3" in last_row(t), "the one that has ended")
    seen.type("q")
    seen.wait(lambda t: "[exited 3 · over]" in t and "status 3" in t, "the way out")


def test_keys_typed_together_with_the_one_that_opens_a_page_are_the_pages(server: RunningServer) -> None:
    make(server, "together", "seq -f 'line %g' 100; exec cat", rows=11, cols=80)
    pid, fd = open_pty("attach", "together")
    try:
        read_until(fd, lambda seen: b"line 100" in seen and b"? help" in seen, b"")
        os.write(fd, b"\x1c[g/line 4[12]$\r")
        read_until(fd, lambda seen: b"match 1 of 2" in seen, b"")
        os.write(fd, b"q\x1cdnothing")
        shown = read_until(fd, lambda seen: b"[detached" in seen, b"")
        assert b"/line 4" not in shown
    finally:
        os.close(fd)
        os.waitpid(pid, 0)
    assert not any("/line" in line for line in server.get("/sessions/together/screen?format=plain")["lines"])
