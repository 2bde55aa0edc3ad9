"""Tables on a terminal."""

from __future__ import annotations

import io

import pytest

from wsh.cli.output import print_table

ID = "0123456789abcdef0123456789abcdef"
COLUMNS = ("id", "state", "risk", "asked by", "command")
ROW = (ID, "waiting, 4 min left", "destructive, outside of the folder", "agent ada of the fleet", "rm -rf " + "x" * 60)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(cols: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rows without the heading, which is bold."""
    screen = Screen()
    monkeypatch.setenv("COLUMNS", str(cols))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", screen)
    print_table(COLUMNS, [ROW])
    return [row for row in screen.getvalue().splitlines() if "\x1b" not in row]


def test_an_id_stays_in_one_piece_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    for cols in (80, 110):
        rows = shown(cols, monkeypatch)
        assert rows[0].startswith(ID) and max(map(len, rows)) <= cols


def test_an_id_is_folded_in_a_terminal_that_is_too_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = shown(40, monkeypatch)
    assert max(map(len, rows)) <= 40
    assert "".join(row[: row.index(" ")] for row in rows) == ID
