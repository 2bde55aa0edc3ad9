"""What a program asks of its terminal and tells it."""

from __future__ import annotations

import os

import pytest

from wsh.terminal import (
    ClipboardWrite,
    Terminal,
    TerminalBell,
    TerminalCwdChanged,
    TerminalLimits,
    TerminalNotification,
    TerminalProgress,
    TerminalTitleChanged,
)

QUESTIONS = [
    (b"\x1b[5n", b"\x1b[0n"),
    (b"ab\x1b[6n", b"\x1b[1;3R"),
    (b"\x1b[>q", b"\x1bP>|wsh\x1b\\"),
    (b"\x1b[?2004$p", b"\x1b[?2004;2$y"),
    (b"\x1b[?2004h\x1b[?2004$p", b"\x1b[?2004;1$y"),
    (b"\x1b[18t", b"\x1b[8;24;80t"),
    (b"\x1b[14t", b"\x1b[4;384;640t"),
    (b"\x1b[16t", b"\x1b[6;16;8t"),
    (b"\x1b[?u", b"\x1b[?0u"),
]


@pytest.mark.parametrize(("question", "answer"), QUESTIONS)
def test_a_question_is_answered_once(question: bytes, answer: bytes) -> None:
    with Terminal() as terminal:
        terminal.feed(question)
        assert terminal.take_replies() == answer
        assert terminal.take_replies() == b""


def test_device_attributes_are_answered() -> None:
    with Terminal() as terminal:
        for question, start in ((b"\x1b[c", b"\x1b[?"), (b"\x1b[>c", b"\x1b[>"), (b"\x1b[=c", b"\x1bP!|")):
            terminal.feed(question)
            assert terminal.take_replies().startswith(start)


def test_what_could_leak_or_inject_is_never_answered() -> None:
    with Terminal() as terminal:
        terminal.feed(b"\x1b]2;; rm -rf ~ #\x07\x1b]52;c;c2VjcmV0\x07")
        for question in (b"\x1b[21t", b"\x1b[20t", b"\x1b]52;c;?\x07", b"\x1b]52;p;?\x1b\\", b"\x05"):
            terminal.feed(question)
        assert terminal.take_replies() == b""


def test_a_pixel_size_that_was_told_is_answered() -> None:
    with Terminal() as terminal:
        terminal.resize(10, 40, cell_width_px=9, cell_height_px=20)
        terminal.feed(b"\x1b[14t\x1b[18t")
        assert terminal.take_replies() == b"\x1b[4;200;360t\x1b[8;10;40t"


def test_events_come_in_order_and_once() -> None:
    with Terminal() as terminal:
        terminal.feed(
            b"\x07\x07\x1b]2;hello\x1b\\\x1b]7;file://localhost/tmp/a%20b\x07\x1b]52;c;aGk=\x07"
            b"\x1b]9;note\x07\x1b]777;notify;Title;Body\x07\x1b]9;4;1;50\x07"
        )
        assert terminal.take_events() == [
            TerminalBell(2),
            TerminalTitleChanged("hello"),
            TerminalCwdChanged("/tmp/a b"),
            ClipboardWrite("clipboard", b"hi"),
            TerminalNotification("", "note"),
            TerminalNotification("Title", "Body"),
            TerminalProgress("set", 50),
        ]
        assert terminal.take_events() == []
        assert (terminal.title, terminal.cwd) == ("hello", "/tmp/a b")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///tmp", "/tmp"),
        (f"file://{os.uname().nodename}/home/x", "/home/x"),
        ("file://localhost/caf%C3%A9", "/café"),
        ("file:///odd?name#here", "/odd?name#here"),
        ("/bare/path", "/bare/path"),
        ("file://elsewhere.example/tmp", None),
        ("http://localhost/tmp", None),
        ("file:///bad%0Aname", None),
        ("file:///nul%00", None),
        ("relative", None),
        ("file://[broken/tmp", None),
        ("", None),
    ],
)
def test_a_working_directory_is_believed_only_if_it_is_of_this_host(url: str, path: str | None) -> None:
    with Terminal() as terminal:
        terminal.feed(f"\x1b]7;{url}\x07".encode())
        assert terminal.cwd == path


def test_titles_are_one_line_without_control_characters_and_not_endless() -> None:
    with Terminal() as terminal:
        terminal.feed("\x1b]2;a\u009bb\u0085c\x07".encode())
        assert terminal.title == "abc"
        terminal.feed(b"\x1b]2;" + b"x" * 100_000 + b"\x07")
        assert len(terminal.title) <= 1024


def test_what_waits_to_be_taken_is_bounded() -> None:
    with Terminal(limits=TerminalLimits(events=10, reply_bytes=100)) as terminal:
        for number in range(100):
            terminal.feed(b"\x1b]9;note %d\x07\x1b[6n" % number)
        assert len(terminal.take_events()) == 10
        assert len(terminal.take_replies()) <= 100
        terminal.feed(b"\x1b[6n")
        assert terminal.take_replies() == b"\x1b[1;1R"


def test_a_storm_of_bells_is_one_event_and_bells_are_heard_again_after_it() -> None:
    with Terminal() as terminal:
        for _ in range(50):
            terminal.feed(b"\x07" * 20_000)
        (storm,) = terminal.take_events()
        assert isinstance(storm, TerminalBell)
        assert storm.count > 100
        terminal.feed(b"\x07")
        assert terminal.take_events() == [TerminalBell(1)]


def test_modes_can_be_told() -> None:
    with Terminal() as terminal:
        modes = terminal.modes
        assert not modes.bracketed_paste
        assert (modes.mouse_mode, modes.cursor_shape, modes.cursor_visible) == ("none", "block", True)
        terminal.feed(b"\x1b[?2004h\x1b[?1h\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[?2026h\x1b[?25l\x1b[6 q\x1b[>5u")
        modes = terminal.modes
        assert modes.bracketed_paste
        assert terminal.bracketed_paste
        assert modes.application_cursor_keys
        assert (modes.mouse, modes.mouse_mode, modes.mouse_format) == (True, "button", "sgr")
        assert modes.focus_events
        assert modes.synchronized_output
        assert not modes.cursor_visible
        assert modes.cursor_shape == "bar"
        assert modes.kitty_keyboard == 5
