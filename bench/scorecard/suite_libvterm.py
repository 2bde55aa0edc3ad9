"""libvterm: scripts of pushes and questions. What is asked of cells, cursor and answers is asked of every terminal.

What a script expects of libvterm's own interior (damage, rectangles that move, callbacks of its parser, encoders of keys) has no counterpart
and is not counted. A section (`!title`) is a case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from bench.scorecard.engine import Cell, Engine, Row
from bench.scorecard.outcome import Outcome
from wsh.terminal.width import width_of

_STRING = re.compile(r'\s*"((?:[^"\\]|\\.)*)"(?:\s*x\s*(\d+))?\s*\.?')
_ESCAPE = re.compile(r"\\(x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)")
_CELL = re.compile(r"\{(.*?)\} width=(\d) attrs=\{(.*?)\} (?:dwl |dhl\S* )?fg=(\S+) bg=(\S+)")
_PALETTE = (
    (0, 0, 0), (224, 0, 0), (0, 224, 0), (224, 224, 0), (0, 0, 224), (224, 0, 224), (0, 224, 224), (224, 224, 224),
    (128, 128, 128), (255, 64, 64), (64, 255, 64), (255, 255, 64), (64, 64, 255), (255, 64, 255), (64, 255, 255), (255, 255, 255),
)  # fmt: skip
_ATTRIBUTES = {"B": "bold", "U": "underline", "I": "italic", "K": "blink", "R": "inverse"}


def run(folder: Path, engine: Engine) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for path in sorted(folder.glob("*.test")):
        script = Script(engine)
        section = "beginning"
        for line in path.read_text().splitlines():
            text = line.strip()
            if text == "__END__":
                break
            if text.startswith("!"):
                _close(found, path.stem, section, script)
                section = text[1:]
            elif text and not text.startswith("#"):
                script.take(text)
        _close(found, path.stem, section, script)
    return found


def _close(found: dict[str, Outcome], file: str, section: str, script: Script) -> None:
    checks, misses = script.end_section()
    name = f"{file}: {section}"
    while name in found:
        name += " again"
    if checks:
        found[name] = Outcome(not misses, misses[0] if misses else "")
    elif section != "beginning":
        found[name] = Outcome(None, "asks only about the inside of libvterm")


@dataclass
class Script:
    """One file as it runs in one terminal."""

    engine: Engine
    rows: int = 25
    cols: int = 80
    checks: int = 0
    misses: list[str] = field(default_factory=list)
    pushed: bytes = b""
    expected: list[str] = field(default_factory=list)
    replied: bytes = b""

    def end_section(self) -> tuple[int, list[str]]:
        self._settle()
        result = self.checks, self.misses
        self.checks, self.misses = 0, []
        return result

    def take(self, line: str) -> None:
        if repeat := re.match(r"\$REP\s+(\d+):\s*(.*)", line):
            for _ in range(int(repeat[1])):
                self.take(repeat[2])
        elif sequence := re.match(r"\$SEQ\s+(\d+)\s+(\d+):\s*(.*)", line):
            for value in range(int(sequence[1]), int(sequence[2]) + 1):
                self.take(sequence[3].replace("\\#", str(value)))
        elif line.startswith("?"):
            self._settle()
            question, _, wanted = line[1:].partition("=")
            self._ask(question.split(), wanted.strip())
        elif line[0].islower():
            self.expected.append(line)
        else:
            self._settle()
            self._command(line)

    def _command(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "INIT":
            self.rows, self.cols = 25, 80
            self.engine.open(25, 80)
        elif word == "RESET":
            self._feed(b"\x1bc")
        elif word == "RESIZE":
            self.rows, self.cols = (int(number) for number in rest.split(","))
            self.engine.resize(self.rows, self.cols)
        elif word == "PUSH":
            self.pushed = read_string(rest)
            self._feed(self.pushed)

    def _feed(self, data: bytes) -> None:
        self.replied = self.engine.feed(data)

    def _settle(self) -> None:
        """What the last push was to bring about."""
        expected, self.expected = self.expected, []
        wanted = b"".join(read_string(line[7:]) for line in expected if line.startswith("output "))
        if wanted and self.pushed:
            if not self.replied:
                self.engine.show()
                self.replied = self.engine.late_replies()
            self._check(self.replied == wanted, f"answers {self.replied!r} instead of {wanted!r}")
        glyphs = [line.split() for line in expected if line.startswith("putglyph ")]
        if glyphs and self.pushed and not re.search(rb"[\x00-\x1f\x7f]", self.pushed):
            for _, codes, _width, place, *_ in glyphs:
                row, col = (int(number) for number in place.split(","))
                self._check_cell(row, col, "".join(chr(int(code, 16)) for code in codes.split(",")))
        self.pushed = b""

    def _ask(self, question: list[str], wanted: str) -> None:
        what, place = (
            question[0],
            [int(number) for part in question[1:] for number in part.split(",") if number.isdigit()],
        )
        if what == "cursor":
            row, col = (int(number) for number in wanted.split(","))
            seen = self.engine.cursor()
            self._check(seen == (row, col), f"cursor at {seen} instead of {(row, col)}")
        elif what in ("screen_row", "screen_chars", "screen_text"):
            self._ask_text(what, place, wanted)
        elif what == "screen_cell":
            self._ask_cell(place[0], place[1], wanted)
        elif what == "screen_eol":
            seen_empty = not "".join(text for text, _ in self._columns(place[0])[place[1] :]).strip()
            self._check(seen_empty == (wanted == "1"), f"end of line at {place}: {seen_empty}")

    def _ask_text(self, what: str, place: list[int], wanted: str) -> None:
        if wanted.startswith('"'):
            text = read_string(wanted).decode("utf-8", "replace")
        else:
            codes = [int(code, 16) for code in wanted.split(",") if code.strip()]
            text = bytes(codes).decode("utf-8", "replace") if what == "screen_text" else "".join(map(chr, codes))
        top, left, bottom, right = place if len(place) == 4 else (place[0], 0, place[0] + 1, self.cols)
        lines = ["".join(cell[0] for cell in self._columns(row)[left:right]).rstrip() for row in range(top, bottom)]
        seen = "\n".join(lines).rstrip("\n")
        self._check(seen == text.rstrip(), f"{what} {place}: {seen!r} instead of {text.rstrip()!r}")

    def _ask_cell(self, row: int, col: int, wanted: str) -> None:
        match = _CELL.match(wanted)
        if match is None:
            return
        codes, _, attributes, fg, bg = match.groups()
        text = "".join(chr(int(code, 16)) for code in codes.split(",") if code)
        self._check_cell(row, col, text)
        columns = self._columns(row)
        style = columns[col][1] if col < len(columns) else ""
        if not re.search(r"[FS^_]", attributes):
            names = {_ATTRIBUTES[letter] for letter in attributes if letter in _ATTRIBUTES}
            seen = {name for name in _ATTRIBUTES.values() if name in style.split()}
            self._check(seen == names or not text, f"cell {row},{col}: {seen} instead of {names}")
        if text:
            self._check_colour(row, col, style, "fg", fg, (240, 240, 240))
        self._check_colour(row, col, style, "bg", bg, (0, 0, 0))

    def _check_colour(self, row: int, col: int, style: str, which: str, wanted: str, default: tuple[int, ...]) -> None:
        colour = tuple(int(number) for number in re.findall(r"\d+", wanted))
        found = re.search(rf"{which}=\(([^)]*)\)", style)
        seen = tuple(int(number) for number in found[1].split(",") if number.strip()) if found else default
        if len(seen) == 1:
            seen = _PALETTE[seen[0]]
        self._check(seen == colour, f"cell {row},{col}: {which} {seen} instead of {colour}")

    def _check_cell(self, row: int, col: int, text: str) -> None:
        columns = self._columns(row)
        seen = columns[col][0] if col < len(columns) else " "
        self._check(seen.strip() == text.strip(), f"cell {row},{col}: {seen!r} instead of {text!r}")

    def _columns(self, row: int) -> list[Cell]:
        rows = self.engine.show()
        return spread(rows[row]) if row < len(rows) else []

    def _check(self, holds: bool, problem: str) -> None:
        self.checks += 1
        if not holds:
            self.misses.append(problem)


def spread(row: Row) -> list[Cell]:
    """A row by columns: the second half of a wide character is empty."""
    columns: list[Cell] = []
    for text, style in row:
        width = width_of(text[0])
        if width == 0 and columns:
            at = len(columns) - 1
            while at and not columns[at][0]:
                at -= 1
            columns[at] = (columns[at][0] + text, columns[at][1])
            continue
        columns.append((text, style))
        columns += [("", style)] * (width - 1)
    return columns


def read_string(text: str) -> bytes:
    """A string as Perl writes it, with `x` for repetition and `.` to join."""
    found = b""
    for body, times in _STRING.findall(text):
        found += _ESCAPE.sub(_unescape, body).encode("latin-1") * int(times or 1)
    return found


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x":
        return chr(int(code[1:].strip("{}"), 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return {"e": "\x1b", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a"}.get(code, code)
