"""alacritty: recordings of real programs beside the grid of cells, with styles, that it made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.scorecard.engine import Cell, Colour, Engine, Row, indexed, make_cell
from bench.scorecard.outcome import Outcome, compare_rows

_NAMES = ("Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White")
_FLAGS = {
    "BOLD": "bold",
    "DIM": "faint",
    "ITALIC": "italic",
    "UNDERLINE": "underline",
    "DOUBLE_UNDERLINE": "underline",
    "UNDERCURL": "underline",
    "DOTTED_UNDERLINE": "underline",
    "DASHED_UNDERLINE": "underline",
    "STRIKEOUT": "strikethrough",
    "INVERSE": "inverse",
}


def run(folder: Path, engine: Engine) -> dict[str, Outcome]:
    found = {}
    for case in sorted(path for path in folder.iterdir() if path.is_dir()):
        if not (case / "grid.json").exists():
            found[case.name] = Outcome(None, "its grid.json is not in the cache")
            continue
        size = json.loads((case / "size.json").read_text())
        engine.open(size["screen_lines"], size["columns"])
        engine.feed((case / "alacritty.recording").read_bytes())
        expected = read_grid(json.loads((case / "grid.json").read_text()), size["screen_lines"])
        found[case.name] = compare_rows(engine.show(), expected, coloured_blanks=engine.tells_coloured_blanks)
    return found


def read_grid(grid: Any, rows: int) -> list[Row]:
    """The visible rows. They are stored from the bottom up, in a ring that begins at `zero`."""
    raw = grid["raw"]
    stored = raw["inner"]
    ordered = [stored[(raw["zero"] + number) % len(stored)] for number in range(rows)]
    return [_read_row(row["inner"]) for row in reversed(ordered)]


def _read_row(cells: list[Any]) -> Row:
    row: Row = []
    for cell in cells:
        flags = {flag.strip() for flag in cell["flags"].split("|")}
        if "WIDE_CHAR_SPACER" in flags:
            continue
        row += _read_cell(cell, flags)
    return row


def _read_cell(cell: Any, flags: set[str]) -> list[Cell]:
    text = " " if cell["c"] == "\t" else cell["c"]
    styles = [_FLAGS[flag] for flag in flags if flag in _FLAGS]
    marks = (cell.get("extra") or {}).get("zerowidth") or []
    return [
        make_cell(character, _read_colour(cell["fg"]), _read_colour(cell["bg"]), styles) for character in [text, *marks]
    ]


def _read_colour(colour: Any) -> Colour:
    if "Spec" in colour:
        spec = colour["Spec"]
        return spec["r"], spec["g"], spec["b"]
    if "Indexed" in colour:
        return indexed(colour["Indexed"])
    name = str(colour["Named"]).removeprefix("Dim")
    if name.removeprefix("Bright") in _NAMES:
        return (_NAMES.index(name.removeprefix("Bright")) + 8 * name.startswith("Bright"),)
    return None
