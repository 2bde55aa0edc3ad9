"""Recorded output of real programs beside the screens it makes (`recordings/`), however it is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wsh.terminal import Terminal

FOLDER = Path(__file__).parent / "recordings"
NAMES = sorted(path.stem for path in FOLDER.glob("*.vt"))


def load(name: str) -> tuple[bytes, dict[str, Any]]:
    return (FOLDER / f"{name}.vt").read_bytes(), json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def matches(terminal: Terminal, expected: dict[str, Any]) -> bool:
    screen = terminal.screen(True)
    return bool(
        screen.lines == expected["styled"]
        and terminal.screen(False).lines == expected["plain"]
        and screen.cursor.to_wire() == expected["cursor"]
        and screen.mode == expected["mode"]
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_fed_whole_makes_its_screen(name: str) -> None:
    data, expected = load(name)
    with Terminal(24, 80) as terminal:
        terminal.feed(data)
        assert terminal.screen(True).lines == expected["styled"]
        assert matches(terminal, expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_fed_byte_by_byte_makes_the_same_screen(name: str) -> None:
    data, expected = load(name)
    with Terminal(24, 80) as terminal:
        for index in range(len(data)):
            terminal.feed(data[index : index + 1])
        assert matches(terminal, expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_cut_in_two_anywhere_makes_the_same_screen(name: str, torture: bool) -> None:
    data, expected = load(name)
    step = 1 if torture or len(data) < 2000 else 17
    for cut in range(0, len(data), step):
        with Terminal(24, 80) as terminal:
            terminal.feed(data[:cut])
            terminal.feed(data[cut:])
            assert matches(terminal, expected), f"cut at {cut}"


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_stored_and_restored_anywhere_goes_on_to_the_same_screen(name: str, torture: bool) -> None:
    data, expected = load(name)
    for cut in range(0, len(data), 1 if torture else 41):
        with Terminal(24, 80) as terminal:
            terminal.feed(data[:cut])
            stored = terminal.snapshot()
        with Terminal.restore(stored) as restored:
            restored.feed(data[cut:])
            assert matches(restored, expected), f"cut at {cut}"


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_in_the_middle_of_a_recording_lets_another_terminal_join(name: str, torture: bool) -> None:
    data, expected = load(name)
    for cut in range(0, len(data), 1 if torture else 97):
        with Terminal(24, 80) as terminal, Terminal(24, 80) as joined:
            terminal.feed(data[:cut])
            joined.feed(terminal.replay())
            joined.feed(data[cut:])
            assert matches(joined, expected), f"cut at {cut}"
