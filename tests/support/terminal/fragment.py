"""Pieces of terminal output for generated tests, and the state of a terminal in a comparable form."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from wsh.terminal import Terminal

number = st.integers(0, 12)

TEXT = st.text(
    st.sampled_from(list("abcXYZ 0189~#é ñß日本語한글🙂👩‍🚀\u0301\u200d\ufe0f│█")), min_size=1, max_size=12
).map(str.encode)
MOVES = st.one_of(
    st.sampled_from([b"\r", b"\n", b"\r\n", b"\t", b"\b", b"\x1bD", b"\x1bE", b"\x1bM", b"\x1b7", b"\x1b8"]),
    st.builds(lambda a, b: b"\x1b[%d;%dH" % (a, b), number, number),
    st.builds(lambda n, final: b"\x1b[%d%c" % (n, final), number, st.sampled_from(list(b"ABCDEFGIZ`ade"))),
)
EDITS = st.builds(lambda n, final: b"\x1b[%d%c" % (n, final), number, st.sampled_from(list(b"@JKLMPSTXb")))
STYLES = st.one_of(
    st.builds(lambda n: b"\x1b[%dm" % n, st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 9, 22, 24, 27, 31, 42, 39, 49, 97])),
    st.builds(lambda n: b"\x1b[38;5;%dm" % n, st.integers(0, 255)),
    st.builds(lambda n: b"\x1b[48;2;%d;0;9m" % n, st.integers(0, 255)),
    st.sampled_from([b"\x1b[4:3m", b"\x1b[58;5;3m", b"\x1b[53m"]),
)
MODES = st.builds(
    lambda n, final: b"\x1b[?%d%c" % (n, final),
    st.sampled_from([1, 5, 6, 7, 25, 45, 66, 69, 1000, 1002, 1004, 1006, 2004, 2027]),
    st.sampled_from(list(b"hl")),
)
REGIONS = st.one_of(
    st.builds(lambda a, b: b"\x1b[%d;%dr" % (a, b), number, number),
    st.builds(lambda a, b: b"\x1b[%d;%ds" % (a, b), number, number),
    st.sampled_from([b"\x1b[r", b"\x1b[4h", b"\x1b[4l", b"\x1bH", b"\x1b[g"]),
)
SCREENS = st.sampled_from(
    [
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b[?47h",
        b"\x1b[?47l",
        b"\x1b[2J",
        b"\x1b[3J",
        b"\x1b[22J",
        b"\x1b#8",
        b"\x1bc",
    ]
)
STRINGS = st.sampled_from(
    [
        b"\x1b]2;title \xc3\xa9\x07",
        b"\x1b]7;file:///tmp/x%20y\x1b\\",
        b"\x1b]8;;http://a.b/c\x1b\\",
        b"\x1b]8;;\x07",
        b"\x1b]133;A\x07",
        b"\x1b]133;C\x07",
        b"\x1b]4;1;rgb:00/11/22\x07",
        b"\x1b[>1u",
        b"\x1b[<u",
        b"\x1b[3 q",
        b"\x1bP$qm\x1b\\",
        b"\x1b[6n",
        b"\x1b[c",
    ]
)
NOISE = st.binary(min_size=1, max_size=8)
LINES = st.builds(lambda n, text: b"".join(b"%d %b\r\n" % (i, text) for i in range(n)), st.integers(1, 20), TEXT)

# Line drawing makes wide characters into wide blanks, which no output can ask for; so it has no wide text beside it.
DRAWING = st.sampled_from([b"\x1b(0", b"\x1b(B", b"\x1b)0\x0e", b"\x0f"])
ANY = st.one_of(TEXT, TEXT, LINES, MOVES, EDITS, STYLES, MODES, REGIONS, SCREENS, STRINGS, NOISE)
DRAWN = st.lists(st.one_of(DRAWING, DRAWING, st.just(b"lqqk x"), MOVES, EDITS, STYLES, REGIONS, SCREENS), min_size=1)
STREAM = st.one_of(st.lists(ANY, min_size=1, max_size=25), st.lists(ANY, min_size=1, max_size=25), DRAWN).map(b"".join)


def state_of(terminal: Terminal) -> dict[str, Any]:
    screen = terminal.screen(True)
    return {
        "lines": screen.lines,
        "cursor": screen.cursor,
        "mode": screen.mode,
        "modes": terminal.modes,
        "title": terminal.title,
        "cwd": terminal.cwd,
        "text": terminal.screen(False).lines,
        "kept": terminal.scrollback(limit=100_000, styled=True).lines,
    }
