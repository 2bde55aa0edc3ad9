"""Earlier lines of the session: moving, searching, selecting and copying, with the keys of vi and of emacs.

Both sets of keys work; where they differ (Ctrl+F, Ctrl+B, Ctrl+E) the setting says whose counts. Lines are those that the server has, up to the
last one at the time of opening, so that nothing moves away while somebody reads.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from wsh.client.attach.column import character_at, column_of
from wsh.client.attach.history import Found, History, Place, SearchTooLong, search_pattern
from wsh.client.attach.keystroke import Keystroke, read_keystroke
from wsh.client.attach.page import Done, Message
from wsh.wire.bracketed_paste import strip_marks

CopyKeys: TypeAlias = Literal["vi", "emacs"]

_VI = {
    "h": "left", "j": "down", "k": "up", "l": "right", "w": "next_word", "b": "last_word", "e": "word_end",
    "0": "line_start", "^": "line_text", "$": "line_end", "g": "first", "G": "last", "H": "top", "M": "middle", "L": "bottom",
    "{": "last_gap", "}": "next_gap", "ctrl+u": "half_up", "ctrl+d": "half_down", "ctrl+b": "page_up", "ctrl+f": "page_down",
    "ctrl+y": "scroll_up", "ctrl+e": "scroll_down", "/": "search_down", "?": "search_up", "n": "again", "N": "again_back",
    "v": "select", "space": "select", "V": "select_lines", "o": "other_end", "y": "copy", "enter": "copy", "ctrl+j": "copy",
    "q": "leave", "i": "leave", "escape": "back", "ctrl+c": "leave",
}  # fmt: skip
_EMACS = {
    "ctrl+b": "left", "ctrl+n": "down", "ctrl+p": "up", "ctrl+f": "right", "alt+f": "word_end", "alt+b": "last_word",
    "ctrl+a": "line_start", "alt+m": "line_text", "ctrl+e": "line_end", "alt+<": "first", "alt+>": "last",
    "ctrl+v": "page_down", "alt+v": "page_up", "ctrl+s": "search_down", "ctrl+r": "search_up", "ctrl+space": "select",
    "alt+w": "copy", "ctrl+w": "copy", "ctrl+g": "back", "alt+{": "last_gap", "alt+}": "next_gap",
}  # fmt: skip
_BOTH = {
    "left": "left", "right": "right", "up": "up", "down": "down", "home": "line_start", "end": "line_end",
    "pageup": "page_up", "pagedown": "page_down", "ctrl+home": "first", "ctrl+end": "last",
    "wheel_up": "wheel_up", "wheel_down": "wheel_down",
}  # fmt: skip
_HINTS: dict[CopyKeys, tuple[str, str]] = {
    "vi": ("/ ? search · v select · y copy · q back", "y copy · o other end · Escape ends selecting"),
    "emacs": (
        "Ctrl+S Ctrl+R search · Ctrl+Space select · Alt+W copy · Ctrl+G back",
        "Alt+W copy · Ctrl+G ends selecting",
    ),
}
"""What may be done, without and with a selection."""
_WORD = re.compile(r"\w+|[^\w\s]+")
_WHEEL = 3
_MOST_LINES = 100_000


class LookBackPage:
    def __init__(self, history: History, cursor: Place, *, keys: CopyKeys = "vi", by_wheel: bool = False) -> None:
        """`by_wheel`: the wheel opened the page, and leaves it at the last line."""
        self._by_wheel = by_wheel
        self._lines = history
        self._hints = _HINTS[keys]
        self._bound = _BOTH | (_VI | _EMACS if keys == "emacs" else _EMACS | _VI)
        self._line = max(history.first, min(cursor[0], history.end - 1))
        self._at = cursor[1]
        self._wish = cursor[1]
        """The column that going up and down keeps to."""
        self._top = max(history.first, history.end)
        self._height = 1
        self._anchor: Place | None = None
        self._by_lines = False
        self._count = ""
        self._pattern: re.Pattern[str] | None = None
        self._found: list[Found] = []
        self._forwards = False
        self._typed: str | None = None
        """What is typed of a search, while it is."""
        self._told = ""
        self._note = ""
        """What the next search has to say besides."""

    # showing

    def show(self, rows: int, cols: int) -> list[Message]:
        self._height = max(1, rows - 1)
        self._keep_in_sight()
        shown = range(self._top, min(self._top + self._height, self._lines.end))
        marks: list[tuple[int, int, int, str]] = []
        if self._pattern is not None:
            marks += self._marks_of_found(shown)
        marks += [(line, first, end, "selected") for line in shown for first, end in self._selected_in(line)]
        page: Message = {
            "type": "look_back",
            "epoch": self._lines.epoch,
            "line": self._top,
            "cursor": [self._line, self._at],
            "marks": marks[:10_000],
        }
        return [page, {"type": "hint", "text": self._hint()}]

    def _marks_of_found(self, shown: range) -> Iterator[tuple[int, int, int, str]]:
        # What was found before may end in the first row.
        index = max(0, bisect_left(self._found, (shown.start, 0)) - 1)
        while index < len(self._found) and self._found[index][0] < shown.stop:
            line, at, left = self._found[index]
            while left > 0 and line < shown.stop:
                row = self._lines.whole_row(line)
                end = min(at + left, len(row))
                if line in shown:
                    yield line, at, min(end, len(self._lines.text(line))), "found"
                line, at, left = line + 1, 0, left - (end - at)
            index += 1

    def _hint(self) -> str:
        if self._typed is not None:
            return f"{'/' if self._forwards else '?'}{self._typed}▏"
        told, self._told = self._told, ""
        place = f"{self._line - self._lines.first + 1}/{self._lines.end - self._lines.first}"
        if told:
            return f"{place} · {told}"
        if self._anchor is not None:
            return f"{place} · {self._hints[1]}"
        return f"{place} · {self._hints[0]}"

    @property
    def _is_at_end(self) -> bool:
        return self._top + self._height >= self._lines.end

    def _keep_in_sight(self) -> None:
        lines = self._lines
        self._line = max(lines.first, min(self._line, lines.end - 1))
        self._at = max(0, min(self._at, len(lines.text(self._line))))
        self._top = max(self._line - self._height + 1, min(self._top, self._line))
        self._top = max(lines.first, min(self._top, lines.end - self._height))

    # keys

    def press(self, key: Keystroke) -> Done | None:
        if key.name.startswith("alt+") and (self._typed is not None or key.name not in self._bound):
            behind = read_keystroke(key.raw, 1)
            if self._typed is None and (self._anchor is None or behind.name not in self._bound):
                return None  # a key that means nothing here: it must not leave, and the next one reach the program
            # Escape and another key that came at once.
            return self._press(Keystroke("escape", b"\x1b")) or self._press(behind)
        return self._press(key)

    def _press(self, key: Keystroke) -> Done | None:
        if self._typed is not None:
            self._type_search(key)
            return None
        if key.name.startswith("mouse_"):
            return self._point(key)
        if key.name.isdecimal() and len(key.name) == 1 and (self._count or key.name != "0"):
            self._count = (self._count + key.name)[:6]
            return None
        times, self._count = int(self._count or 1), ""
        action = self._bound.get(key.name, "")
        match action:
            case "leave":
                return Done()
            case "wheel_down" if self._by_wheel and self._anchor is None and self._is_at_end:
                return Done()
            case "back":
                if self._anchor is None:
                    return Done()
                self._anchor = None
            case "copy":
                return self._copy()
            case "search_down" | "search_up":
                self._forwards, self._typed = action == "search_down", ""
            case "again" | "again_back":
                for _ in range(min(times, 1000)):
                    self._search(self._forwards == (action == "again"))
            case "select" | "select_lines":
                by_lines = action == "select_lines"
                same = self._anchor is not None and self._by_lines == by_lines
                self._anchor, self._by_lines = None if same else self._anchor or (self._line, self._at), by_lines
            case "other_end":
                if self._anchor is not None:
                    (self._line, self._at), self._anchor = self._anchor, (self._line, self._at)
                    self._note_column()
            case _:
                self._move(action, times)
        return None

    def _move(self, action: str, times: int) -> None:
        text = self._lines.text(self._line)
        half, page = max(1, self._height // 2), max(1, self._height - 2)
        down = {"up": -1, "down": 1}
        turn = {"half_up": -half, "half_down": half, "page_up": -page, "page_down": page}
        scroll = {"scroll_up": -1, "scroll_down": 1, "wheel_up": -_WHEEL, "wheel_down": _WHEEL}
        if action in down:
            self._go_down(down[action] * times)
            return
        if action in turn:
            self._top += turn[action] * times
            self._go_down(turn[action] * times)
            return
        if action in scroll:
            self._scroll(scroll[action] * times)
            return
        match action:
            case "left":
                self._at = max(0, self._at - times)
            case "right":
                self._at = min(len(text), self._at + times)
            case "line_start":
                self._at = 0
            case "line_text":
                self._at = len(text) - len(text.lstrip())
            case "line_end":
                self._at = max(0, len(text) - 1)
            case "first":
                self._line, self._at = self._lines.first, 0
            case "last":
                self._line, self._at = self._lines.end - 1, 0
            case "top" | "middle" | "bottom":
                shown = min(self._height, self._lines.end - self._top)
                self._line = self._top + {"top": 0, "middle": shown // 2, "bottom": shown - 1}[action]
                self._at = 0
            case "next_word" | "last_word" | "word_end":
                for _ in range(min(times, 1000)):
                    self._go_by_word(action)
            case "next_gap" | "last_gap":
                for _ in range(min(times, 1000)):
                    self._go_to_gap(1 if action == "next_gap" else -1)
            case _:
                return
        self._note_column()

    def _go_down(self, lines: int) -> None:
        self._line = max(self._lines.first, min(self._line + lines, self._lines.end - 1))
        self._at = character_at(self._lines.text(self._line), self._wish)

    def _scroll(self, lines: int) -> None:
        self._top = max(self._lines.first, min(self._top + lines, self._lines.end - self._height))
        self._line = max(self._top, min(self._line, self._top + self._height - 1))
        self._at = character_at(self._lines.text(self._line), self._wish)

    def _note_column(self) -> None:
        self._wish = column_of(self._lines.text(self._line), self._at)

    def _go_by_word(self, action: str) -> None:
        step = -1 if action == "last_word" else 1
        line, at = self._line, self._at
        while self._lines.first <= line < self._lines.end:
            words = list(_WORD.finditer(self._lines.text(line)))
            places = [word.end() - 1 if action == "word_end" else word.start() for word in words]
            if line == self._line:
                places = [place for place in places if (place < at if step < 0 else place > at)]
            if places:
                self._line, self._at = line, places[-1 if step < 0 else 0]
                return
            line += step

    def _go_to_gap(self, step: int) -> None:
        """To the next empty line behind some text."""
        line = self._line
        while self._lines.first < line < self._lines.end - 1 or line == self._line:
            line += step
            if not self._lines.text(line) and self._lines.text(line - step):
                break
        self._line, self._at = max(self._lines.first, min(line, self._lines.end - 1)), 0

    # searching

    def _type_search(self, key: Keystroke) -> None:
        assert self._typed is not None
        match key.name:
            case "enter" | "ctrl+j" | "ctrl+s" | "ctrl+r":
                typed, self._typed = self._typed, None
                if key.name in ("ctrl+s", "ctrl+r"):
                    self._forwards = key.name == "ctrl+s"
                if not typed or self._look_for(typed):
                    self._search(self._forwards)
            case "escape" | "ctrl+c" | "ctrl+g":
                self._typed = None
            case "backspace" | "ctrl+h":
                self._typed = self._typed[:-1] if self._typed else None
            case "ctrl+u":
                self._typed = ""
            case "space":
                self._typed += " "
            case "paste":
                pasted = strip_marks(key.raw).decode("utf-8", "replace")
                self._typed += "".join(c for c in pasted.replace("\r", "\n").split("\n")[0] if c.isprintable())
            case name if len(name) == 1 and name.isprintable():
                self._typed += name
            case _:
                pass
        self._typed = self._typed[:500] if self._typed is not None else None

    def _look_for(self, text: str) -> bool:
        """Find every place of an expression."""
        self._pattern, self._note = search_pattern(text)
        try:
            self._found = self._lines.find_all(self._pattern)
        except SearchTooLong:
            self._pattern, self._found = None, []
            self._told = "this expression takes too long here"
        return self._pattern is not None

    def _search(self, forwards: bool) -> None:
        if self._pattern is None:
            self._told = "nothing was searched for yet"
            return
        note, self._note = self._note, ""
        if not self._found:
            self._told = f"not found{' · ' * bool(note)}{note}"
            return
        here = (self._line, self._at)
        index = bisect_left(self._found, here)
        if not forwards:
            index -= 1
        elif index < len(self._found) and self._found[index][:2] == here:
            index += 1
        if not 0 <= index < len(self._found):
            note = "searched on from the first line" if forwards else "searched on from the last line"
            index %= len(self._found)
        self._told = f"match {index + 1} of {len(self._found)}{' · ' * bool(note)}{note}"
        self._line, self._at, _ = self._found[index]
        if not self._top <= self._line < self._top + self._height:
            self._top = self._line - self._height // 2
        self._note_column()

    # selecting

    def _point(self, key: Keystroke) -> Done | None:
        if key.name == "mouse_release":
            return self._copy() if self._anchor not in (None, (self._line, self._at)) else None
        line = max(self._lines.first, min(self._top + key.row, self._lines.end - 1))
        place = (line, character_at(self._lines.text(line), key.col))
        if key.name == "mouse_press":
            self._anchor = None
        elif self._anchor is None:
            self._anchor, self._by_lines = (self._line, self._at), False
        self._line, self._at = place
        self._note_column()
        return None

    def _ends(self) -> tuple[Place, Place] | None:
        if self._anchor is None:
            return None
        here = (self._line, self._at)
        first, last = min(self._anchor, here), max(self._anchor, here)
        if self._by_lines:
            # Whole lines, also where the screen broke them.
            return (self._lines.first_row(first[0]), 0), (self._lines.last_row(last[0]), last[1])
        return first, last

    def _selected_in(self, line: int) -> Sequence[tuple[int, int]]:
        """Which characters of a line are selected, the one under the cursor included."""
        ends = self._ends()
        if ends is None or not ends[0][0] <= line <= ends[1][0]:
            return ()
        (first, start), (last, stop) = ends
        length = len(self._lines.text(line))
        if self._by_lines:
            return ((0, length),)
        return ((start if line == first else 0, min(length, stop + 1) if line == last else length),)

    def _copy(self) -> Done:
        ends = self._ends()
        if ends is None:
            return Done()
        if ends[1][0] - ends[0][0] >= _MOST_LINES:
            return Done(told=f"more than {_MOST_LINES} lines are not copied at once")
        parts: list[str] = []
        for line in range(ends[0][0], ends[1][0] + 1):
            is_last = line == ends[1][0]
            goes_on = not is_last and self._lines.goes_on(line)
            for first, end in self._selected_in(line):
                parts.append(self._lines.whole_row(line)[first:] if goes_on else self._lines.text(line)[first:end])
            if self._by_lines if is_last else not goes_on:
                parts.append("\n")
        copied = "".join(parts)
        count = copied.count("\n") + (not copied.endswith("\n"))
        return Done(copied=copied, told=f"copied {count} line{'s' if count > 1 else ''}") if copied else Done()
