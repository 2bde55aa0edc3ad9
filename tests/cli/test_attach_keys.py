"""The prefix key of `wsh attach` in a real terminal: the hint, what follows it, and that it takes no key from the program."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.pane import WSH, Pane, make, read_until
from tests.support.serving import RunningServer, running_server
from tests.support.waiting import wait_until, wait_while
from tests.support.warm import run_warm
from wsh.wire.system.place import Places

HINT = "? help · d detach · [ scroll · s sessions · t take over · c capture · \\ literal"


def mode_of(server: RunningServer, name: str) -> str:
    return str(server.get(f"/sessions/{name}/input/mode")["mode"])


def attach(server: RunningServer, pane: Callable[..., Pane], name: str, rows: int = 24, cols: int = 80) -> Pane:
    make(server, name)
    seen = pane(f"{WSH} attach {name}", rows, cols)
    seen.wait(lambda t: t.startswith("$") and "? help" in t.splitlines()[-1], "the prompt and the status line")
    return seen


def last_row(text: str) -> str:
    return text.splitlines()[-1].strip()


def test_the_prefix_shows_a_hint_and_captures_nothing(server: RunningServer, pane: Callable[..., Pane]) -> None:
    seen = attach(server, pane, "hint")
    seen.type("C-\\")
    seen.wait(lambda t: last_row(t) == HINT, "the hint")
    wait_while(lambda: mode_of(server, "hint") == "passthrough", "keys that pass", 0.6)
    seen.type("Escape")
    seen.wait(lambda t: "hint ·" in last_row(t), "the status line again")
    # A key that means nothing behind the prefix is said to, and is nobody's; what follows is the program's again.
    seen.type("C-\\")
    seen.wait(lambda t: last_row(t) == HINT, "the hint")
    seen.type("z")
    seen.wait(lambda t: last_row(t) == "no such key: z · Ctrl+\\ ? for help", "why nothing happens")
    seen.type("echo un''harmed", "Enter")
    seen.wait(lambda t: "\n$ echo un''harmed\nunharmed" in f"\n{t}" and "hint ·" in last_row(t), "what was typed then")
    seen.type("C-\\")
    seen.wait(lambda t: last_row(t) == HINT, "the hint")
    seen.type("d")
    seen.wait(lambda t: "[detached · hint]" in t and "status 0" in t, "the way out")


def test_twice_detaches_however_long_it_takes(server: RunningServer, pane: Callable[..., Pane]) -> None:
    seen = attach(server, pane, "twice")
    seen.type("C-\\")
    seen.wait(lambda t: last_row(t) == HINT, "the hint")
    wait_while(lambda: last_row(seen.text()) == HINT, "the hint", 0.7)
    seen.type("C-\\")
    text = seen.wait(lambda t: "[detached · twice]" in t and "status 0" in t, "the way out")
    assert "literal" not in text


def test_a_capture_by_an_agent_is_taken_back_and_the_next_keys_are_the_programs(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    seen = attach(server, pane, "captive")
    server.request("POST", "/sessions/captive/input/capture")
    seen.wait(lambda t: "keys captured by" in t and "Ctrl+\\ to take them back" in t, "the banner")
    seen.type("lost")
    seen.type("C-\\")
    seen.wait(lambda t: "keys captured by" not in t, "the banner's end")
    assert mode_of(server, "captive") == "passthrough"
    seen.type("cd /; echo free", "Enter")  # c is no command now
    text = seen.wait(lambda t: "\nfree" in t, "keys reach the program again")
    assert "lost" not in text and mode_of(server, "captive") == "passthrough"
    server.request("POST", "/sessions/captive/input/capture")
    seen.wait(lambda t: "keys captured by" in t, "the banner")
    seen.type("C-\\", "C-\\")
    seen.wait(lambda t: "[detached · captive]" in t, "the way out")


def test_keys_are_captured_on_demand_and_taken_back(server: RunningServer, pane: Callable[..., Pane]) -> None:
    seen = attach(server, pane, "demand")
    seen.type("C-\\", "c")
    seen.wait(lambda t: "keys captured by" in t, "the banner")
    assert mode_of(server, "demand") == "capture"
    seen.type("hello")
    seen.type("C-\\")
    seen.wait(lambda t: "keys captured by" not in t, "the banner's end")
    seen.type("echo free", "Enter")
    text = seen.wait(lambda t: "\nfree" in t, "keys reach the program again")
    assert "hello" not in text


def test_taking_over_and_handing_back(server: RunningServer, pane: Callable[..., Pane]) -> None:
    seen = attach(server, pane, "mine", cols=120)
    seen.type("C-\\", "t")
    seen.wait(lambda t: "taken over by" in last_row(t) and "Ctrl+\\ t hands back" in last_row(t), "who took over")
    seen.type("C-\\", "t")
    seen.wait(lambda t: "taken over" not in last_row(t), "handed back")


def test_the_literal_prefix_reaches_the_program(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "quit", "sh -c 'trap \"echo was quit\" QUIT; echo ready; while :; do sleep 0.05; done'")
    seen = pane(f"{WSH} attach quit")
    seen.wait(lambda t: "ready" in t, "the program")
    seen.type("C-\\", "\\")
    seen.wait(lambda t: "was quit" in t, "the signal that Ctrl+\\ sends")


def test_a_small_attach_beside_a_large_session_shows_the_prompt_and_resizes_nothing(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    make(server, "large", rows=30, cols=100)
    seen = pane(f"{WSH} attach large", 15, 60)
    seen.wait(lambda t: t.startswith("$") and "60×14 of 100×30" in t, "the prompt")
    server.request("POST", "/sessions/large/input", b"seq 50; echo e''nd\r")
    text = seen.wait(lambda t: "\nend\n$" in t, "the prompt after many lines")
    assert text.splitlines()[0] == "39"
    info = server.get("/sessions/large")
    assert (info["rows"], info["cols"]) == (30, 100)
    seen.type("C-\\")
    seen.wait(lambda t: "? help" in last_row(t), "the hint")
    seen.type("Up")
    seen.wait(lambda t: "32\n" in t and "end" not in t, "a higher part")
    info = server.get("/sessions/large")
    assert (info["rows"], info["cols"]) == (30, 100), "moving is looking"
    seen.type("x")
    wait_until(
        lambda: [server.get("/sessions/large")[side] for side in ("rows", "cols")] == [14, 60],
        "the size of the person who types",
        seen=seen.text,
    )
    seen.wait(lambda t: "$ x" in t, "what was typed")


def test_whoever_only_looks_is_told_so(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "looked", rows=10, cols=40)
    seen = pane(f"{WSH} attach --read-only looked")
    seen.wait(
        lambda t: t.startswith("$") and "looked · read only ·" in last_row(t), "the prompt and that one only looks"
    )
    seen.type("x")
    seen.wait(lambda t: last_row(t) == "read only: attach without --read-only to type", "why the key does nothing")
    seen.type("C-\\", "Escape")
    seen.wait(lambda t: "looked ·" in last_row(t), "the status line again")
    seen.type("C-\\", "t")
    seen.wait(lambda t: last_row(t) == "read only: attach without --read-only to type", "why not")
    seen.type("C-\\", "Escape")
    seen.wait(lambda t: "looked ·" in last_row(t), "the status line again")
    assert seen.text().splitlines()[0].rstrip("│ ") == "$"
    info = server.get("/sessions/looked")
    assert (info["rows"], info["cols"]) == (10, 40)
    seen.type("C-\\", "d")
    text = seen.wait(lambda t: "status 0" in t, "the way out")
    assert text.splitlines()[1] == "[detached · looked]", "the shell goes on below the text, not below the border"


def test_keys_are_configurable(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "other")
    seen = pane(f"WSH_ATTACH_PREFIX=ctrl+b WSH_ATTACH_KEYS=detach=x {WSH} attach other", 24, 100)
    seen.wait(lambda t: t.startswith("$") and "Ctrl+B ? help" in t, "the prompt")
    seen.type("C-b")
    seen.wait(lambda t: "x detach" in last_row(t), "the hint")
    seen.type("x")
    seen.wait(lambda t: "[detached · other]" in t, "the way out")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ("WSH_ATTACH_PREFIX=f1", "attach.prefix must be ctrl+"),
        ("WSH_ATTACH_KEYS=leave=x", "the commands are help, detach"),
        ("WSH_ATTACH_KEYS=scroll=d", "two commands have the same key"),
    ],
)
def test_a_key_that_cannot_be_is_said_before_anything_else(
    server: RunningServer, pane: Callable[..., Pane], variables: str, said: str
) -> None:
    make(server, "wrong")
    seen = pane(f"{variables} {WSH} attach wrong", 24, 160)
    seen.wait(lambda t: said in t and "status 2" in t, "the complaint")


def test_a_server_that_does_not_answer_keeps_nobody(server: RunningServer) -> None:
    make(server, "frozen")
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(sys.executable, [*WSH.split(), "attach", "--json", "frozen"])
    try:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        read_until(fd, lambda seen: b"$ " in seen, b"")
        os.kill(server.process.pid, 19)
        try:
            os.write(fd, b"\x1c\x1c")
            shown = read_until(fd, lambda seen: b'"reason": "detached"' in seen, b"")
        finally:
            os.kill(server.process.pid, 18)
        assert json.loads(shown[shown.rindex(b"{") : shown.rindex(b"}") + 1])["session"] == "frozen"
    finally:
        os.close(fd)
        os.waitpid(pid, 0)


def test_what_is_typed_behind_the_way_out_reaches_no_program(server: RunningServer, pane: Callable[..., Pane]) -> None:
    seen = attach(server, pane, "left")
    seen.type("echo ", "C-\\", "d", "stray", "Enter")
    seen.wait(lambda t: "[detached · left]" in t and "status 0" in t, "the way out")
    server.get("/sessions/left/idle?timeout_ms=200&max_wait_ms=5000")
    assert server.get("/sessions/left/screen?format=plain")["lines"][0].rstrip() == "$ echo"


def test_a_key_between_two_presses_of_the_prefix_makes_them_two(
    server: RunningServer, pane: Callable[..., Pane]
) -> None:
    seen = attach(server, pane, "between")
    server.request("POST", "/sessions/between/input/capture")
    seen.wait(lambda t: "keys captured by" in t, "the banner")
    seen.type("C-\\", "x", "C-\\")
    seen.wait(lambda t: last_row(t) == HINT and "$ x" in t, "the hint, not the way out")


@pytest.mark.parametrize("by", ["key", "TSTP", "STOP"])
def test_a_suspended_viewer_gives_the_terminal_to_the_shell_and_comes_back(
    server: RunningServer, pane: Callable[..., Pane], tmp_path: Path, by: str
) -> None:
    make(server, "asleep")
    note = tmp_path / "pid"
    seen = pane("env -u BASH_ENV PS1='outside> ' bash --norc --noprofile -b -i")
    seen.wait(lambda t: "outside>" in t, "the shell")
    seen.type(f"sh -c 'echo $$ > {note}; exec {WSH} attach asleep'", "Enter")
    seen.wait(lambda t: t.startswith("$") and "? help" in last_row(t), "the session")
    seen.type("echo", "Space")
    seen.wait(lambda t: t.startswith("$ echo"), "an echo")
    if by == "key":
        seen.type("C-\\", "C-z")
    else:
        os.kill(int(note.read_text()), getattr(signal, f"SIG{by}"))
    seen.wait(lambda t: "outside>" in t.partition("Stopped")[2], "the shell again")
    seen.type("bg", "Enter")
    seen.wait(lambda t: t.count("Stopped") == 2, "a viewer that draws nothing in the background")
    seen.type("echo out''side", "Enter")
    seen.wait(lambda t: "\noutside\n" in t, "the shell's own keys")
    seen.type("fg", "Enter")
    seen.wait(lambda t: t.startswith("$ echo") and "outside" not in t and "? help" in last_row(t), "the session again")
    seen.type("inside", "Enter")
    seen.wait(lambda t: t.startswith("$ echo inside\ninside\n$"), "keys for the program")
    seen.type("C-\\", "d")
    seen.wait(lambda t: "[detached · asleep]" in t, "the way out")
    assert "outside\noutside>" in seen.text(history=True), "what the shell showed is kept"


def test_a_viewer_is_suspended_and_resized_while_it_waits_for_a_server(
    pane: Callable[..., Pane], places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSH_CLIENT_RESTART_WAIT_S", "3600")
    with running_server(places, check_left=False) as mortal:
        make(mortal, "orphan")
        seen = pane("env -u BASH_ENV PS1='outside> ' bash --norc --noprofile -i")
        seen.wait(lambda t: "outside>" in t, "the shell")
        seen.type(f"{WSH} attach orphan", "Enter")
        seen.wait(lambda t: t.startswith("$") and "? help" in last_row(t), "the session")
        mortal.process.kill()
        mortal.process.wait()
        seen.wait(lambda t: "the server is gone" in last_row(t), "that the server is gone")
        seen.resize(12, 70)
        seen.wait(
            lambda t: len(t.splitlines()) <= 12 and "the server is gone" in last_row(t), "the same in the new size"
        )
        seen.type("kept", "C-\\", "C-z")
        seen.wait(lambda t: "outside>" in t.partition("Stopped")[2], "the shell again")
        with running_server(places, check_left=False):
            seen.type("fg", "Enter")
            seen.wait(lambda t: t.startswith("$ kept") and "orphan ·" in last_row(t), "the session with what was typed")
            seen.type("C-\\", "d")
            seen.wait(lambda t: "[detached · orphan]" in t, "the way out")
            run_warm([*WSH.split(), "stop"], check=True)


def test_a_viewer_whose_shell_ignores_suspension_stays(server: RunningServer, pane: Callable[..., Pane]) -> None:
    make(server, "awake")
    seen = pane("env -u BASH_ENV PS1='outside> ' bash --norc --noprofile -b -i")
    seen.wait(lambda t: "outside>" in t, "the shell")
    seen.type(f"(trap '' TSTP; {WSH} attach awake)", "Enter")
    seen.wait(lambda t: t.startswith("$") and "? help" in last_row(t), "the session")
    seen.type("C-\\", "C-z", "echo here", "Enter")
    text = seen.wait(lambda t: "\nhere\n" in t or "Stopped" in t, "the session, still")
    assert "Stopped" not in text
