"""How much of a text a model is given: tokens counted cheaply, and lines chosen so that a result keeps within them.

Nobody knows the tokenizer of the model that reads, so the count is that of a common one (see `token_count`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from wsh.mcp.token_count import count_tokens as count_tokens  # rooms ask here for both


@dataclass(frozen=True)
class NumberedLine:
    """One line, with its number in the command's own output (from 1)."""

    number: int
    text: str
    last: int = 0
    """The last line that it stands for, if it stands for several."""

    @property
    def end(self) -> int:
        return max(self.number, self.last)


_ERROR = re.compile(
    r"(?<!\b0 )(?<!\bno )\b(?:errors?|fatal|fail(?:ed|ure|ures)?|exception|traceback|panic(?:ked)?|undefined reference"
    r"|segmentation fault|not found|cannot|ERR!)\b|\w(?:Error|Exception)\b|^E  ",
    re.IGNORECASE,
)
_MOVING = re.compile(r"[0-9.,:]+|[#=>█▉▊▋▌▍▎▏░▒▓━╸╺]+|[-.*]{2,}|[⠀-⣿◐◓◑◒|/\\-]")
_PROGRESS = re.compile(r"\d%|[⠀-⣿◐◓◑◒]|[#=█▓━]{4,}")
_REPEATS = 3
_LAST_NOTE = 12
"""Tokens of the line that ends the lines which name an error."""


def number_lines(lines: Iterable[str], first: int = 1) -> list[NumberedLine]:
    return [NumberedLine(first + at, text.rstrip()) for at, text in enumerate(lines)]


def collapse(rows: Sequence[NumberedLine]) -> list[NumberedLine]:
    """Repeated lines and progress, each as what it ended as, with how many lines it stands for."""
    kept: list[NumberedLine] = []
    at = 0
    while at < len(rows):
        shape = _shape(rows[at].text)
        end = at + 1
        while end < len(rows) and _shape(rows[end].text) == shape:
            end += 1
        first, last = rows[at], rows[end - 1]
        if end - at < _REPEATS:
            kept += rows[at:end]
        elif not last.text:
            kept.append(NumberedLine(first.number, "", last.number))
        else:
            what = "the same line" if first.text == last.text else "progress"
            kept.append(
                NumberedLine(first.number, f"{last.text}  [lines {first.number}-{last.number}: {what}]", last.number)
            )
        at = end
    return kept


def _shape(text: str) -> str:
    """What is the same in every line of one progress bar or spinner; of any other line, the line."""
    return "\0" + "".join(_MOVING.sub("", text).split()) if _PROGRESS.search(text) else text


def fit_rows(rows: Sequence[NumberedLine], budget: int, explain: Callable[[int, int, int], str]) -> list[str]:
    """The lines that fit: head, tail, and between them every line that names an error, with its number.

    `explain` says of the lines from one to another, of which so many name an error, that they were left out, and how they are read.
    """
    rows = collapse(rows)
    costs = _count_within(rows, budget)
    if costs is not None:
        return [row.text for row in rows]
    notes = count_tokens(explain(rows[0].number, rows[-1].end, len(rows))) + _LAST_NOTE
    budget = max(8, budget - notes)
    head = _take(rows, budget // 4)
    tail = _take(rows[len(head) :][::-1], budget // 2)[::-1]
    middle = rows[len(head) : len(rows) - len(tail)]
    if not middle:
        return [row.text for row in (*head, *tail)]
    wrong = [NumberedLine(row.number, f"{row.number}: {row.text}") for row in middle if _ERROR.search(row.text[:2000])]
    shown = _take(wrong, budget // 4)
    note = explain(middle[0].number, middle[-1].end, len(wrong))
    lines = [row.text for row in head] + [note] + [row.text for row in shown]
    if len(shown) < len(wrong):
        lines.append(f"[{len(wrong) - len(shown)} more name an error]")
    elif shown:
        lines.append("[…]")
    return lines + [row.text for row in tail]


def fit_head(rows: Sequence[NumberedLine], budget: int) -> list[NumberedLine]:
    """As many as fit from the first on, at least one."""
    return _take(rows, budget)


def _count_within(rows: Sequence[NumberedLine], budget: int) -> int | None:
    """Their tokens, or None beyond the budget; no more is counted than needed for that."""
    used = 0
    for row in rows:
        used += _count_line(row.text, budget)
        if used > budget:
            return None
    return used


def _take(rows: Sequence[NumberedLine], budget: int) -> list[NumberedLine]:
    taken: list[NumberedLine] = []
    used = 0
    for row in rows:
        cost = _count_line(row.text, budget)
        if used + cost > budget:
            if not taken:
                taken.append(NumberedLine(row.number, clip(row.text, budget), row.last))
            break
        used += cost
        taken.append(row)
    return taken


def _count_line(text: str, budget: int) -> int:
    """With its line feed. Of a line that is far too long only a part is counted."""
    most = 16 * budget + 256
    return count_tokens(text + "\n") if len(text) <= most else budget + 1


def clip(text: str, budget: int) -> str:
    """Both ends of one long line."""
    room = 4 * budget
    if len(text) <= room and count_tokens(text) <= budget:
        return text
    while room > 16 and count_tokens(_leave_out(text, room // 2)) > budget:
        room = room * 3 // 4
    return _leave_out(text, max(8, room // 2))


def _leave_out(text: str, half: int) -> str:
    if len(text) <= 2 * half:
        return text
    return f"{text[:half]}[… {len(text) - 2 * half} characters …]{text[-half:]}"


def clip_around(text: str, found: str, budget: int) -> str:
    """The part of one long line that has the first `found` in it."""
    if len(text) <= budget or len(text) <= 16 * budget and count_tokens(text) <= budget:
        return text
    at = text.lower().find(found.lower())
    if at < 0:
        return text
    room = 4 * budget
    while (shown := _cut_around(text, at, len(found), room)) and room > 16 and count_tokens(shown) > budget:
        room = room * 3 // 4
    return shown


def _cut_around(text: str, at: int, length: int, room: int) -> str:
    start = max(0, at - max(0, room - length) // 2)
    end = min(len(text), start + max(room, length))
    before = f"[… {start} characters …]" if start else ""
    after = f"[… {len(text) - end} characters …]" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"
