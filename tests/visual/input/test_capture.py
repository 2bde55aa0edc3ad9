"""Input capture: who may, for how long, and what readers get of the keys."""

from __future__ import annotations

from typing import Any

import pytest

from wsh.visual.input.capture import KEPT_EVENTS, InputControl, InputEvent, ModeChanged
from wsh.wire.error import InputCaptured, Refused


def make() -> tuple[InputControl, list[Any]]:
    heard: list[Any] = []
    return InputControl(heard.append), heard


def mode_of(control: InputControl) -> str:
    return control.mode


def test_capture_has_an_owner_and_another_cannot_take_it() -> None:
    control, heard = make()
    control.capture("a")
    control.capture("a")
    assert mode_of(control) == "capture" and heard == [ModeChanged("capture", "a")]
    with pytest.raises(InputCaptured):
        control.capture("b")
    with pytest.raises(Refused):
        control.release("b")
    control.release("a")
    control.release("a")
    assert mode_of(control) == "passthrough" and len(heard) == 2


def test_a_person_can_always_end_a_capture() -> None:
    control, _ = make()
    control.capture("agent")
    control.release("person", is_person=True)
    assert mode_of(control) == "passthrough"
    control.capture("agent")
    control.release("viewer", is_person=True)
    control.capture("viewer")
    assert mode_of(control) == "capture" and control.owner == "viewer"


def test_taking_over_ends_the_capture_of_an_agent_and_not_of_a_person() -> None:
    control, heard = make()
    control.take_back()
    control.capture("agent", by_agent=True)
    control.take_back()
    assert mode_of(control) == "passthrough" and heard[-1] == ModeChanged("passthrough", None)
    control.capture("viewer")
    control.take_back()
    assert mode_of(control) == "capture" and control.owner == "viewer"


def test_a_lease_ends_with_its_owner_and_takes_the_focus_along() -> None:
    control, heard = make()
    control.capture("a")
    control.focus("element")
    control.end_lease("somebody else")
    assert mode_of(control) == "capture"
    control.end_lease("a")
    assert mode_of(control) == "passthrough" and control.focused is None
    assert heard[-1] == ModeChanged("passthrough", None)


def test_a_reader_gets_each_event_once_and_is_told_what_it_missed() -> None:
    control, _ = make()
    control.capture("a")
    start = control.next_seq
    control.focus("e")
    control.divert(b"\x1b[A", "up", "v1")
    events, following, missed = control.read_events(start)
    assert events == [InputEvent(start, b"\x1b[A", "up", "e", "v1")] and missed == 0
    assert control.read_events(following) == ([], following, 0)
    for _ in range(KEPT_EVENTS + 5):
        control.divert(b"x", "x", "v1")
    events, following, missed = control.read_events(following)
    assert (len(events), missed) == (KEPT_EVENTS, 5)
