"""Whom a server that starts blames for the end of the one before it."""

from __future__ import annotations

import pytest

from wsh.session.recovery.death import Deaths
from wsh.wire.system.crash import LOOP_DEATHS, left_trace
from wsh.wire.system.place import Places


@pytest.fixture(autouse=True)
def _state(places: Places) -> None:
    places.state.mkdir(parents=True, exist_ok=True)


def _accuse(places: Places, at: int, trace: str = "") -> int:
    """What a new server says, after one that left this trace."""
    if trace:
        left_trace(places).write_text(trace)
    return Deaths(places).accuse("sid", "name", "snapshot", at)


def test_kills_from_outside_at_the_same_place_never_count_as_a_loop(places: Places) -> None:
    assert [_accuse(places, 7690) for _ in range(4 * LOOP_DEATHS)] == [0] + [1] * (4 * LOOP_DEATHS - 1)
    assert _accuse(places, 8000) == 0


def test_deaths_by_native_code_are_counted(places: Places) -> None:
    trace = "Fatal Python error: Segmentation fault\n"
    assert [_accuse(places, at, trace) for at in range(LOOP_DEATHS)] == list(range(1, LOOP_DEATHS + 1))
