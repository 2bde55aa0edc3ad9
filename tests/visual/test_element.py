"""Overlays and panels as data: what may be asked, what is kept, what the program's screen gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from wsh.visual.element import ElementChanged, ElementLimits
from wsh.visual.picture.layout import lay_out
from wsh.visual.stage import Stage, StageResized
from wsh.wire.error import (
    AlreadyInAltScreen,
    ElementNotFound,
    InvalidOverlay,
    InvalidPanel,
    LimitReached,
    NotFocusable,
    NotInAltScreen,
    OverlayNotFound,
    PanelNotFound,
)
from wsh.wire.model.element import (
    Overlay,
    OverlayCreate,
    OverlayPatch,
    OverlayReplace,
    Panel,
    PanelCreate,
    PanelPatch,
    RegionWrite,
    Span,
)


class FakeProgram:
    """A program that only has a size: the stage needs no more of it."""

    def __init__(self, rows: int = 24, cols: int = 80) -> None:
        self.name = "s"
        self.rows, self.cols = rows, cols
        self.borrowed_rows = 0
        self.resizes: list[tuple[int, int]] = []

    def resize(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.resizes.append((rows, cols))


def make_stage(**limits: int) -> tuple[Stage, FakeProgram]:
    program = FakeProgram()
    return Stage(program, ElementLimits(**limits)), program


# Asked through functions, since a checker would take a property that it saw once for settled.
def mode_of(stage: Stage) -> str:
    return stage.mode


def focus_of(stage: Stage) -> str | None:
    return stage.input.focused


def rows_of(program: FakeProgram) -> int:
    return program.rows


def size_of(program: FakeProgram) -> tuple[int, int]:
    return program.rows, program.cols


def fail(event: object) -> None:
    raise ValueError(event)


def overlay(**changes: Any) -> OverlayCreate:
    return OverlayCreate.model_validate(
        {"x": 1, "y": 2, "width": 10, "height": 3, "spans": [{"text": "hello", "id": "a"}]} | changes
    )


def panel(position: str = "top", height: int = 2, **changes: Any) -> PanelCreate:
    return PanelCreate.model_validate({"position": position, "height": height, "spans": []} | changes)


# the words


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("red", {"indexed": 1}),
        ("Bright-Blue", {"indexed": 12}),
        ("bright_black", {"indexed": 8}),
        ("#0aFF10", {"rgb": {"r": 10, "g": 255, "b": 16}}),
        ({"indexed": 200}, {"indexed": 200}),
        ({"rgb": {"r": 1, "g": 2, "b": 3}}, {"rgb": {"r": 1, "g": 2, "b": 3}}),
    ],
)
def test_a_colour_is_kept_as_an_index_or_as_rgb(given: Any, kept: Any) -> None:
    assert Span.model_validate({"text": "x", "fg": given}).model_dump() == {"text": "x", "fg": kept}


@pytest.mark.parametrize(
    "bad",
    ["crimson", "#12345", "#gggggg", "", 7, {"indexed": 256}, {"indexed": -1}, {"rgb": {"r": 1}}, {"x": 1}, [], True],
)
def test_what_is_no_colour_is_refused(bad: Any) -> None:
    with pytest.raises(ValidationError):
        Span.model_validate({"text": "x", "bg": bad})


def test_control_characters_do_not_survive_in_text() -> None:
    span = Span(text="a\x1b[31mb\x07\r\x00\x9b1m\tc\nd\u202ee\u2066")
    assert span.text == "a[31mb1m c\nde"
    assert RegionWrite(row=0, col=0, text="a\nb\x1b").text == "ab"


@pytest.mark.parametrize(
    "change",
    [
        {"x": -1},
        {"x": 1.5},
        {"x": "1"},
        {"width": 0},
        {"height": 0},
        {"width": 1001},
        {"z": 2**31},
        {"spans": None},
        {"spans": [{"text": 1}]},
        {"spans": [{"text": "x", "blink": True}]},
        {"spans": [{"text": "x", "bold": 1}]},
        {"colour": "red"},
        {"id": "mine"},
    ],
)
def test_an_overlay_that_cannot_be_meant_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        overlay(**change)


# making and changing


def test_an_overlay_is_given_an_id_and_a_place_above_the_others() -> None:
    stage, program = make_stage()
    first = stage.overlays.create(overlay())
    second = stage.overlays.create(overlay(z=7))
    third = stage.overlays.create(overlay())
    assert (first.z, second.z, third.z) == (0, 7, 8)
    assert first.visible and first.screen_mode == "normal"
    assert len({first.id, second.id, third.id}) == 3
    assert program.resizes == []
    assert first.model_dump(mode="json") == {
        "id": first.id,
        "z": 0,
        "spans": [{"text": "hello", "id": "a"}],
        "focusable": False,
        "screen_mode": "normal",
        "visible": True,
        "x": 1,
        "y": 2,
        "width": 10,
        "height": 3,
    }


def test_put_replaces_spans_and_region_writes_and_moves_only_where_told() -> None:
    stage, _ = make_stage()
    made = stage.overlays.create(overlay(background="red"))
    stage.overlays.update(made.id, writes=[RegionWrite(row=0, col=0, text="w")])
    changed = stage.overlays.replace(made.id, OverlayReplace(spans=[Span(text="new")], x=5))
    assert [s.text for s in changed.spans] == ["new"] and changed.region_writes == ()
    assert (changed.x, changed.y, changed.z) == (5, 2, made.z) and changed.background == made.background


def test_patch_changes_what_is_named_and_nothing_else() -> None:
    stage, _ = make_stage()
    made = stage.overlays.create(overlay(background="red"))
    changed = stage.overlays.patch(made.id, OverlayPatch.model_validate({"y": 9, "background": None}))
    assert changed == made.model_copy(update={"y": 9, "background": None})
    with pytest.raises(InvalidOverlay, match="y cannot be null"):
        stage.overlays.patch(made.id, OverlayPatch.model_validate({"y": None}))


def test_spans_are_replaced_by_id_all_or_none() -> None:
    stage, _ = make_stage()
    made = stage.overlays.create(overlay(spans=[{"text": "1", "id": "a"}, {"text": "2"}, {"text": "3", "id": "c"}]))
    changed = stage.overlays.update(made.id, [Span(text="three", id="c"), Span(text="one", id="a", bold=True)])
    assert [s.text for s in changed.spans] == ["one", "2", "three"]
    for bad in ([Span(text="x", id="a"), Span(text="y", id="nobody")], [Span(text="x")]):
        with pytest.raises(InvalidOverlay):
            stage.overlays.update(made.id, bad)
    assert stage.overlays.get(made.id) == changed


def test_region_writes_set_cells_by_position_and_keep_the_others() -> None:
    stage, _ = make_stage()
    made = stage.overlays.create(overlay())
    stage.overlays.update(made.id, writes=[RegionWrite(row=0, col=0, text="a"), RegionWrite(row=1, col=1, text="b")])
    changed = stage.overlays.update(made.id, writes=[RegionWrite(row=0, col=0, text="A")])
    assert [(w.row, w.col, w.text) for w in changed.region_writes] == [(1, 1, "b"), (0, 0, "A")]
    for row, col in ((3, 0), (0, 10)):
        with pytest.raises(InvalidOverlay, match="outside"):
            stage.overlays.update(made.id, writes=[RegionWrite(row=row, col=col, text="x")])


def test_a_batch_that_fails_half_way_changes_nothing() -> None:
    stage, _ = make_stage()
    made = stage.overlays.create(overlay())
    with pytest.raises(InvalidOverlay):
        stage.overlays.update(made.id, [Span(text="new", id="a")], [RegionWrite(row=99, col=0, text="x")])
    assert stage.overlays.get(made.id) == made


def test_limits_are_clear_errors() -> None:
    stage, _ = make_stage(elements=2, spans=3, text_bytes=8)
    stage.overlays.create(overlay())
    stage.overlays.create(overlay())
    with pytest.raises(LimitReached):
        stage.overlays.create(overlay())
    stage.panels.create(panel())
    with pytest.raises(InvalidPanel, match="3 spans"):
        stage.panels.create(panel(spans=[{"text": "x"}] * 4))
    with pytest.raises(InvalidPanel, match="8 bytes"):
        stage.panels.create(panel(spans=[{"text": "ééééé"}]))
    with pytest.raises(InvalidPanel, match="same id"):
        stage.panels.create(panel(spans=[{"text": "x", "id": "1"}, {"text": "y", "id": "1"}]))


def test_a_removed_element_is_not_found() -> None:
    stage, _ = make_stage()
    made = stage.overlays.create(overlay())
    other = stage.panels.create(panel())
    stage.overlays.remove(made.id)
    with pytest.raises(OverlayNotFound):
        stage.overlays.update(made.id, [])
    with pytest.raises(PanelNotFound):
        stage.panels.get(made.id)
    stage.panels.clear()
    assert stage.panels.list() == [] and stage.find_element(other.id) is None


# layout


def test_panels_shrink_the_program_and_give_its_rows_back() -> None:
    stage, program = make_stage()
    top = stage.panels.create(panel("top", 2))
    stage.panels.create(panel("bottom", 3))
    assert size_of(program) == (19, 80)
    stage.resize(40, 100)
    assert size_of(program) == (35, 100)
    stage.panels.patch(top.id, PanelPatch(height=5))
    assert rows_of(program) == 32
    stage.panels.clear()
    assert (rows_of(program), stage.rows) == (40, 40)


def test_the_highest_z_comes_first_and_lies_nearest_its_edge() -> None:
    stage, _ = make_stage()
    low = stage.panels.create(panel("bottom", 2, z=1))
    high = stage.panels.create(panel("bottom", 3, z=5))
    assert [(slot.panel.id, slot.row) for slot in stage.layout.bottom] == [(high.id, 21), (low.id, 19)]


def test_what_does_not_fit_is_not_visible_and_what_is_below_it_may_be() -> None:
    stage, program = make_stage()
    huge = stage.panels.create(panel("top", 24, z=9))
    small = stage.panels.create(panel("top", 1, z=1))
    assert not huge.visible and small.visible and rows_of(program) == 23
    stage.resize(30, 80)
    assert stage.panels.get(huge.id).visible and rows_of(program) == 5
    stage.resize(1, 80)
    assert rows_of(program) == 1 and not any(p.visible for p in stage.panels.list())


@given(
    st.lists(st.tuples(st.sampled_from(["top", "bottom"]), st.integers(1, 30), st.integers(-5, 5)), max_size=12),
    st.integers(1, 60),
)
def test_however_panels_are_laid_out_they_never_overlap_and_one_row_is_left(
    asked: list[tuple[str, int, int]], rows: int
) -> None:
    panels = [
        Panel.model_validate({"id": str(n), "z": z, "position": position, "height": height, "screen_mode": "normal"})
        for n, (position, height, z) in enumerate(asked)
    ]
    layout = lay_out(panels, rows, 80, "normal")
    taken: set[int] = set()
    for slot in (*layout.top, *layout.bottom):
        mine = set(range(slot.row, slot.row + slot.height))
        assert not mine & taken and mine <= set(range(rows))
        taken |= mine
    assert layout.pty_rows >= 1
    assert taken.isdisjoint(range(layout.first_row, layout.first_row + layout.pty_rows))
    assert len(taken) + layout.pty_rows == rows
    hidden = [p for p in panels if p.id not in layout.shown]
    assert all(p.height > layout.pty_rows - 1 for p in hidden), "a panel that would fit is shown"


# screen mode


def test_elements_belong_to_the_mode_they_were_made_in() -> None:
    stage, program = make_stage()
    normal = stage.overlays.create(overlay())
    stage.panels.create(panel("top", 4))
    stage.enter_alternate()
    assert mode_of(stage) == "alt" and rows_of(program) == 24
    assert not stage.overlays.get(normal.id).visible
    in_alt = stage.panels.create(panel("bottom", 1))
    assert in_alt.screen_mode == "alt" and rows_of(program) == 23
    with pytest.raises(AlreadyInAltScreen):
        stage.enter_alternate()
    stage.leave_alternate()
    assert stage.panels.find(in_alt.id) is None and rows_of(program) == 20
    assert stage.overlays.get(normal.id).visible
    with pytest.raises(NotInAltScreen):
        stage.leave_alternate()


def test_the_programs_own_alternate_screen_counts_and_is_not_ours_to_leave() -> None:
    stage, _ = make_stage()
    stage.follow_program(True)
    made = stage.overlays.create(overlay())
    assert mode_of(stage) == "alt" and made.screen_mode == "alt"
    with pytest.raises(NotInAltScreen):
        stage.leave_alternate()
    with pytest.raises(AlreadyInAltScreen):
        stage.enter_alternate()
    stage.follow_program(False)
    assert mode_of(stage) == "normal" and stage.overlays.list() == []


def test_alt_lasts_until_both_the_agent_and_the_program_have_left() -> None:
    stage, _ = make_stage()
    stage.enter_alternate()
    stage.follow_program(True)
    made = stage.overlays.create(overlay())
    stage.leave_alternate()
    assert mode_of(stage) == "alt" and stage.overlays.find(made.id) is not None
    stage.follow_program(False)
    assert mode_of(stage) == "normal" and stage.overlays.find(made.id) is None


# focus


def test_focus_goes_to_what_can_take_it_and_ends_with_it() -> None:
    stage, _ = make_stage()
    plain = stage.overlays.create(overlay())
    able = stage.panels.create(panel(focusable=True))
    with pytest.raises(NotFocusable):
        stage.focus(plain.id)
    with pytest.raises(ElementNotFound):
        stage.focus("nobody")
    stage.focus(able.id)
    assert focus_of(stage) == able.id
    stage.panels.remove(able.id)
    assert focus_of(stage) is None
    able = stage.panels.create(panel(focusable=True))
    stage.focus(able.id)
    stage.enter_alternate()
    assert focus_of(stage) is None


def test_listeners_hear_of_every_change_with_the_element_as_it_is() -> None:
    stage, _ = make_stage()
    heard: list[Any] = []
    stop = stage.subscribe(heard.append)
    stage.subscribe(fail)
    made = stage.panels.create(panel())
    stage.panels.remove(made.id)
    told = [(e.action, e.element.id) for e in heard if isinstance(e, ElementChanged)]
    assert told == [("created", made.id), ("removed", made.id)]
    assert next(e for e in heard if isinstance(e, ElementChanged)).element.visible
    assert [e.layout.pty_rows for e in heard if isinstance(e, StageResized)] == [22, 24]
    stop()
    count = len(heard)
    stage.overlays.create(overlay())
    assert len(heard) == count


def test_elements_survive_the_wire() -> None:
    stage, _ = make_stage()
    made = stage.overlays.create(overlay(background="#010203", focusable=True))
    stage.overlays.update(made.id, writes=[RegionWrite(row=0, col=1, text="x", bold=True)])
    shown = stage.overlays.get(made.id)
    assert Overlay.model_validate_json(shown.model_dump_json()) == shown
