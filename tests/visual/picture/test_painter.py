"""What a viewer's own emulator shows equals the picture composed cell by cell, after every step."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsh.terminal import Terminal
from wsh.visual.picture.cell import BLANK, CellRow, clip, lay_spans, lay_text, put
from wsh.visual.picture.compositor import Picture
from wsh.visual.picture.draw import draw_overlay, draw_panel
from wsh.visual.picture.painter import Painter, ViewShape
from wsh.visual.stage import Stage
from wsh.wire.model.element import OverlayCreate, PanelCreate


@dataclass
class Program:
    """A terminal under a stage, as a session would be."""

    rows: int = 10
    cols: int = 30
    borrowed_rows: int = 0
    name: str = "test"
    terminal: Terminal = field(default_factory=lambda: Terminal(10, 30))

    def resize(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.terminal.resize(rows, cols)


def compose_cells(terminal: Terminal, stage: Stage) -> list[CellRow]:
    """The picture cell by cell, slowly and plainly: what every faster way must equal."""
    layout = stage.layout
    rows: list[CellRow] = [[BLANK] * stage.cols for _ in range(stage.rows)]
    if not stage.has_canvas:
        for index, line in enumerate(terminal.styled_rows()[: layout.pty_rows]):
            put(rows[layout.first_row + index], 0, lay_spans(line))
    for slot in (*layout.top, *layout.bottom):
        for row, drawn in enumerate(draw_panel(slot.panel, stage.cols)[: slot.height]):
            put(rows[slot.row + row], 0, drawn)
    for overlay in sorted(stage.overlays.list(), key=lambda o: o.z):
        if overlay.screen_mode == stage.mode:
            for row, drawn in enumerate(draw_overlay(overlay)):
                if overlay.y + row < stage.rows:
                    put(rows[overlay.y + row], overlay.x, drawn)
    return rows


class Scene:
    """A program, its stage, one painter, and a viewer that is fed what the painter says."""

    def __init__(self, shape: ViewShape | None = None) -> None:
        self.program = Program()
        self.stage = Stage(self.program)
        self.shape = shape or ViewShape(10, 30)
        self.painter = Painter(
            self.program.terminal, self.stage, Picture(self.program.terminal, self.stage), self.shape, 1000
        )
        self.viewer = Terminal(self.shape.rows, self.shape.cols)
        self.viewer.feed(self.painter.full())

    def feed(self, data: bytes) -> None:
        self.program.terminal.feed(data)
        self.stage.follow_program(self.program.terminal.alt)

    def show(self, splits: list[int] | None = None) -> None:
        data = self.painter.change()
        position = 0
        for split in sorted(splits or []):
            at = min(split, len(data))
            self.viewer.feed(data[position:at])
            position = at
        self.viewer.feed(data[position:])

    def check_window(self) -> None:
        """The same for a viewer of another size than the picture: the part that it shows."""
        shape = self.shape
        rows = compose_cells(self.program.terminal, self.stage)[shape.top : shape.top + shape.picture_rows]
        width = max(0, min(shape.cols, self.stage.cols - shape.left))
        expected = [_trim(clip(row, shape.left, width)) for row in rows]
        shown = [_trim(clip(lay_spans(line), 0, width)) for line in self.viewer.styled_rows()]
        assert shown[: len(expected)] == expected

    def check(self) -> None:
        expected = [_trim(row) for row in compose_cells(self.program.terminal, self.stage)]
        shown = [_trim(lay_spans(line)[: self.stage.cols]) for line in self.viewer.styled_rows()]
        assert shown[: len(expected)] == expected
        cursor = self.program.terminal.cursor
        if cursor.visible and not self.stage.has_canvas:
            assert self.viewer.cursor.row == self.stage.layout.first_row + cursor.row
            assert self.viewer.cursor.col == cursor.col
        assert self.viewer.alt == (self.stage.mode == "alt")
        assert self.viewer.modes.bracketed_paste == self.program.terminal.modes.bracketed_paste


def _trim(row: CellRow) -> list[object]:
    # A blank in a link looks like any other blank, and the engine does not say which of them the link has.
    row = [BLANK if cell is not None and cell[:2] == BLANK[:2] else cell for cell in row]
    end = len(row)
    while end and row[end - 1] == BLANK:
        end -= 1
    return list(row[:end])


def overlay(x: int, y: int, width: int, height: int, text: str, **more: object) -> OverlayCreate:
    return OverlayCreate.model_validate(
        {"x": x, "y": y, "width": width, "height": height, "spans": [{"text": text, "fg": "red"}], **more}
    )


def panel(position: str, height: int, text: str) -> PanelCreate:
    return PanelCreate.model_validate(
        {"position": position, "height": height, "spans": [{"text": text}], "background": "blue"}
    )


def test_every_character_is_laid_out_in_the_columns_that_the_terminal_gives_it() -> None:
    terminal = Terminal(1, 20)
    differ: list[str] = []
    for code in range(0x20, 0x10000):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Cs", "Cn", "Co"):
            continue
        terminal.feed(b"\x1bcx" + character.encode())
        if len(lay_text("x" + character, "")) != terminal.cursor.col:
            differ.append(f"{code:x}")
    assert differ == []


def test_an_overlay_lies_at_its_place_beside_every_script() -> None:
    scene = Scene()
    scene.feed("हिन्दी में लिखा हुआ पाठ यहाँ है".encode())
    scene.stage.overlays.create(overlay(20, 0, 4, 1, "LOOK"))
    scene.show()
    shown = str(scene.viewer.screen(styled=False).lines[0])
    before = Terminal(1, 30)
    before.feed(shown[: shown.index("LOOK")].encode())
    assert before.cursor.col == 20


def test_removing_an_overlay_restores_what_it_covered() -> None:
    scene = Scene()
    scene.feed(b"".join(b"row %d is here and long\r\n" % n for n in range(9)))
    scene.show()
    before = scene.viewer.screen(styled=True).lines
    made = scene.stage.overlays.create(overlay(3, 2, 10, 3, "secret\nplans"))
    scene.show()
    assert "secret" in str(scene.viewer.screen(styled=False).lines[2])
    scene.check()
    scene.stage.overlays.remove(made.id)
    scene.show()
    assert scene.viewer.screen(styled=True).lines == before


def test_panels_take_rows_from_the_program_and_give_them_back() -> None:
    scene = Scene()
    scene.feed(b"hello\r\nworld")
    first = scene.stage.panels.create(panel("top", 2, "above\nit"))
    scene.stage.panels.create(panel("bottom", 1, "below"))
    assert scene.program.rows == 7
    scene.show()
    scene.check()
    lines = [str(line) for line in scene.viewer.screen(styled=False).lines]
    assert (lines[0], lines[1], lines[2], lines[9]) == ("above", "it", "hello", "below")
    scene.stage.panels.remove(first.id)
    scene.show()
    scene.check()
    assert scene.program.rows == 9


def test_lines_that_scroll_off_reach_the_viewers_own_scrollback() -> None:
    scene = Scene()
    scene.stage.panels.create(panel("top", 1, "panel"))
    for start in range(0, 300, 37):
        scene.feed(b"".join(b"line %d\r\n" % n for n in range(start, min(300, start + 37))))
        scene.show()
        scene.check()
    kept = [str(line) for line in scene.viewer.scrollback(limit=1000, styled=False).lines]
    numbered = [line for line in kept if line.startswith("line ")]
    assert numbered == [f"line {n}" for n in range(300)]


def test_text_of_an_element_cannot_break_out_of_it() -> None:
    scene = Scene()
    scene.stage.overlays.create(overlay(2, 2, 5, 1, "\x1b[2J\x1b]0;x\x07very long text\nsecond"))
    scene.show()
    scene.check()
    assert scene.viewer.title == ""


def test_an_agents_canvas_hides_the_program_and_leaving_shows_it_again() -> None:
    scene = Scene()
    scene.feed(b"program")
    scene.stage.enter_alternate()
    scene.stage.overlays.create(overlay(0, 0, 6, 1, "canvas"))
    scene.show()
    scene.check()
    assert str(scene.viewer.screen(styled=False).lines[0]) == "canvas"
    scene.stage.leave_alternate()
    scene.show()
    scene.check()
    assert str(scene.viewer.screen(styled=False).lines[0]) == "program"
    assert scene.stage.overlays.list() == []


def test_a_larger_viewer_shows_a_border_and_a_smaller_one_a_window() -> None:
    large = Scene(ViewShape(13, 40))
    large.feed(b"x" * 30)
    large.show()
    lines = [str(line) for line in large.viewer.screen(styled=False).lines]
    assert lines[0] == "x" * 30 + "│"
    assert lines[10] == "─" * 30 + "┘"
    small = Scene(ViewShape(4, 8, False, 2, 5))
    small.feed(b"".join(b"%d23456789abcdef\r\n" % n for n in range(8)))
    small.show()
    assert [str(line) for line in small.viewer.screen(styled=False).lines] == ["6789abcd" for _ in range(4)]


def test_the_status_line_is_the_last_row_and_the_banner_covers_its_end() -> None:
    scene = Scene(ViewShape(11, 30, True))
    scene.painter.status = "name"
    scene.painter.banner = "captured"
    scene.show()
    last = str(scene.viewer.screen(styled=False).lines[10])
    assert last.startswith("name") and last.rstrip().endswith("captured")


def test_wide_characters_in_the_status_line_and_the_banner_stay_in_the_last_row() -> None:
    scene = Scene(ViewShape(11, 30, True))
    scene.feed(b"\r\n".join(b"row %d" % n for n in range(10)))
    for status, banner in (("日本語" * 8, ""), ("name", "日本語" * 8), ("日本語" * 8, "wants 日本語")):
        scene.painter.status, scene.painter.banner = status, banner
        scene.show()
        lines = [str(line) for line in scene.viewer.screen(styled=False).lines]
        assert lines[:10] == [f"row {n}" for n in range(10)]
        assert "日本" in lines[10]


def test_a_viewers_cursor_stays_its_own_until_the_program_sets_one_and_the_title_is_the_sessions_name() -> None:
    scene = Scene()
    scene.painter.name = "work"
    scene.show()
    assert scene.viewer.title == "work"
    assert b"\x1b[0 q" in scene.painter.full() and b"\x1b[2J" not in scene.painter.full()
    scene.feed(b"\x1b[6 q\x1b]2;theirs\x07")
    assert b"\x1b[6 q" in scene.painter.change()
    scene.feed(b"\x1b[2 q")
    assert b"\x1b[2 q" in scene.painter.change()
    assert b"theirs" in scene.painter.full()


FRAGMENTS = st.sampled_from(
    [
        b"plain text ",
        b"\r\n",
        b"\n\n",
        "日本語 wide ".encode(),
        "e\u0301\u0302 combining".encode(),
        b"\x1b[31;1mred\x1b[0m",
        b"\x1b[48;5;22m   \x1b[K\x1b[0m",
        b"\x1b[7mreverse\x1b[27m",
        b"\x1b[5;3Hmoved",
        b"\x1b[1;1H",
        b"\x1b[2J",
        b"\x1b[3;7r",
        b"\x1b[r",
        b"\x1b[L\x1b[M",
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b[?2004h",
        b"\x1b[?2004l",
        b"\x1b[?25l",
        b"\x1b[?25h",
        b"\x1b]8;;http://x.example/\x07link\x1b]8;;\x07",
        b"\x1b[38;2;1;2;3mrgb",
        b"0123456789" * 7,
        b"".join(b"%d\r\n" % n for n in range(25)),
        b"\x1b(0qqq\x1b(B",
        b"\t\ttabs",
        b"\x1b[10P",
        b"\x1bM\x1bM",
    ]
)
STEPS = st.one_of(
    FRAGMENTS,
    st.tuples(st.just("overlay"), st.integers(0, 32), st.integers(0, 11), st.integers(1, 20), st.integers(1, 5)),
    st.tuples(st.just("panel"), st.sampled_from(["top", "bottom"]), st.integers(1, 4)),
    st.just(("clear",)),
    st.just(("canvas",)),
    st.tuples(st.just("resize"), st.integers(1, 10), st.integers(2, 30)),
)


def take_step(scene: Scene, step: object) -> None:
    match step:
        case bytes():
            scene.feed(step)
        case ("overlay", int(x), int(y), int(width), int(height)):
            scene.stage.overlays.create(overlay(x, y, width, height, "wide 日本 text\nand more"))
        case ("panel", str(position), int(height)):
            scene.stage.panels.create(panel(position, height, "panel 語\nrow"))
        case ("clear",):
            scene.stage.overlays.clear()
            scene.stage.panels.clear()
        case ("canvas",):
            if scene.stage.mode == "normal":
                scene.stage.enter_alternate()
            elif scene.stage.has_canvas:
                scene.stage.leave_alternate()
        case ("resize", int(rows), int(cols)):
            scene.stage.resize(rows, cols)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25), st.lists(st.integers(0, 4000), max_size=4))
def test_a_viewer_shows_the_composition_at_every_step(steps: list[object], splits: list[int]) -> None:
    scene = Scene()
    for step in steps:
        take_step(scene, step)
        scene.show(splits)
        scene.check()
        fresh = Terminal(10, 30)
        fresh.feed(scene.painter.full())
        assert fresh.screen(styled=True).lines == scene.viewer.screen(styled=True).lines


SHAPES = st.builds(
    lambda *given: ViewShape(*given),  # hypothesis would fill in all other fields of a named tuple
    st.integers(1, 14),
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from([0, 0, 3]),
    st.sampled_from([0, 0, 7]),
)


@settings(max_examples=100, deadline=None)
@given(SHAPES, st.lists(STEPS, max_size=15), st.booleans())
def test_a_viewer_of_any_size_shows_its_part_of_the_composition(
    shape: ViewShape, steps: list[object], hurried: bool
) -> None:
    scene = Scene(shape)
    for step in steps:
        take_step(scene, step)
        # Hurried: no time for more than one piece of what scrolled off in each frame.
        scene.viewer.feed(scene.painter.change(0.0 if hurried else None))
        if scene.stage.rows > shape.top and scene.stage.cols > shape.left:
            scene.check_window()


WRAPPING = [
    b"$ " + b"echo a long command " * 5 + b"\r\n",
    b"short\r\n",
    "日本語 wide ".encode() * 9 + b"\r\n",
    b"x" * 29 + "語 does not fit\r\n".encode(),
    b"\x1b[41m" + b"coloured " * 8 + b"\x1b[0m\r\n",
    b"trailing blank at the edge of" + b" next" * 12 + b"\r\n",
    b"\r\n",
    b"y" * 30 + b"\r\n",
    b"z" * 700 + b"\r\n",
    b"\x1b]8;;http://x.example/\x07" + b"link" * 20 + b"\x1b]8;;\x07\r\n",
]


def lines_of(terminal: Terminal) -> list[tuple[bytes, bool]]:
    lines, _flows = terminal.vt_lines_between(0, terminal.total_lines)
    return [(line, terminal.wraps(number)) for number, line in enumerate(lines)]


@pytest.mark.parametrize("until", [None, 0.0], ids=["at once", "hurried"])
def test_a_line_that_wraps_is_one_line_for_the_viewers_emulator(until: float | None) -> None:
    scene = Scene()
    program, viewer = scene.program.terminal, scene.viewer
    for piece in (
        *WRAPPING,
        *WRAPPING,
        b"".join(WRAPPING),
        b"q" * 40,
        b"\x1b[5D!",
        b"\x1b[2;1Hover\x1b[K\x1b[10;1H",
        *WRAPPING,
    ):
        scene.feed(piece)
        viewer.feed(scene.painter.change(until))
        scene.check()
        while scene.painter.behind:
            viewer.feed(scene.painter.change(until))
        assert lines_of(viewer) == lines_of(program)
    fresh = Terminal(10, 30)
    fresh.feed(scene.painter.full(1000))
    assert lines_of(fresh) == lines_of(program)


def test_a_line_does_not_go_on_below_what_covers_its_end() -> None:
    scene = Scene()
    scene.feed(b"w" * 75)
    scene.show()
    assert scene.viewer.flowing_rows == {0, 1}
    made = scene.stage.overlays.create(overlay(5, 1, 9, 1, "note"))
    scene.show()
    scene.check()
    scene.feed(b"\x1b[1;1H\x1b[K")
    scene.stage.overlays.remove(made.id)
    scene.show()
    scene.check()
    assert scene.viewer.flowing_rows == scene.program.terminal.flowing_rows == {1}


def print_ahead(scene: Scene, text: bytes) -> bool:
    """As for a key's echo: what the program prints next is shown before it is parsed."""
    done = scene.painter.print_ahead(text)
    if done:
        scene.viewer.feed(text)
    return done


def test_an_echo_is_shown_ahead_and_no_frame_follows() -> None:
    scene = Scene()
    scene.feed(b"$ ")
    scene.show()
    assert print_ahead(scene, b"l")
    scene.feed(b"l")
    assert scene.painter.change() == b""
    scene.check()
    assert print_ahead(scene, b"s -l")
    scene.feed(b"s -l")
    assert scene.painter.change() == b""
    scene.check()


@pytest.mark.parametrize(
    "before",
    [b"\x1b[31mred", b"x" * 29, b"some text\r", "ä".encode(), b"\x1b[?25lhidden"],
    ids=["coloured", "at the edge", "within the row", "not ASCII", "no cursor"],
)
def test_what_would_not_come_out_as_it_is_waits_for_its_frame(before: bytes) -> None:
    scene = Scene()
    scene.feed(before)
    scene.show()
    assert not print_ahead(scene, b"a")


def test_an_echo_that_came_out_otherwise_is_corrected_and_the_next_waits() -> None:
    scene = Scene()
    scene.feed(b"plain ")
    scene.show()
    scene.feed(b"\x1b[31m")
    assert print_ahead(scene, b"a"), "the colour cannot be known yet"
    scene.feed(b"a")
    scene.show()
    scene.check()
    assert not print_ahead(scene, b"b")


_PRINTED = st.one_of(
    st.sampled_from(
        [
            b"a",
            b"bc",
            b"\r\n",
            b"\r",
            b"\x08",
            b"\x1b[31m",
            b"\x1b[0m",
            b"\x1b[4h",
            b"\x1b[4l",
            b"\x1b(0",
            b"\x1b(B",
            b"\x1b[5;5H",
            b"\x1b[?7l",
            b"\x1b[?7h",
            b"\x1b[K",
            b"\x1b[2J",
            b"word " * 8,
            "漢".encode(),
            b"\x1b[?1049h",
            b"\x1b[?1049l",
            b"\n" * 9,
        ]
    ),
    st.binary(min_size=1, max_size=4).map(lambda data: bytes(0x20 + byte % 0x5F for byte in data)),
)


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(st.tuples(_PRINTED, st.booleans()), max_size=20), cols=st.sampled_from([30, 20, 40]))
def test_whatever_follows_an_echo_shown_ahead_the_picture_is_right(steps: list[tuple[bytes, bool]], cols: int) -> None:
    scene = Scene(ViewShape(10, cols))
    scene.stage.overlays.create(overlay(12, 3, 4, 2, "over"))
    for data, is_framed in steps:
        if data.isascii() and data.decode().isprintable():
            print_ahead(scene, data)
        scene.feed(data)
        if is_framed:
            scene.show()
            scene.check() if cols == 30 else scene.check_window()
    scene.show()
    scene.check() if cols == 30 else scene.check_window()


def test_lines_that_scrolled_off_with_a_change_of_screens_are_told_as_left_out() -> None:
    scene = Scene()
    scene.feed(b"".join(b"line %d\r\n" % number for number in range(12)))
    scene.show()
    for typed, left_out in ((b"", False), (b"vim\r\n", True)):
        scene.feed(typed + b"\x1b[?1049hfull")
        scene.show()
        scene.feed(b"\x1b[?1049l")
        scene.show()
        assert scene.painter.left_out is left_out
    assert scene.painter.since == scene.program.terminal.screen_line
    # Somebody who comes while a full-screen program runs has no earlier lines.
    scene.feed(b"\x1b[?1049h")
    scene.show()
    scene.painter.full(100)
    scene.feed(b"\x1b[?1049l")
    scene.show()
    assert scene.painter.left_out
