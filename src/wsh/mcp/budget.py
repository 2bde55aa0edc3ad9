"""How much of a text a model is given: tokens counted cheaply, and lines chosen so that a result keeps within them.

Nobody knows the tokenizer of the model that reads, so the count is that of a common one (o200k_base), estimated from classes of
characters: within a tenth of it for what terminals print. Standard library alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

_DENSE = re.compile(r"[A-Za-z0-9+/=]{16,}")
_TURN = re.compile(r"(?<=[a-z])(?=[A-Z0-9+])|(?<=[A-Z])(?=[a-z0-9+])|(?<=[0-9])(?=[A-Za-z+])")
_HEX = re.compile(r"[0-9a-f]+")
_MARK = r"[!-/:-@\[-`{-~]"
# A word takes one blank or mark in front of it along; digits go by threes.
_PIECE = re.compile(
    rf"(?P<word>[ ]?(?:[A-Z]*[a-z]+|[A-Z]+))|(?P<marked>{_MARK}(?:[A-Z]*[a-z]+|[A-Z]+))|(?P<number>[0-9]{{1,3}})"
    r"|(?P<cjk>[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])|(?P<letters>[ ]?[\u00c0-\u1fff]+)"
    r"|(?P<emoji>[ ]?[\U0001f000-\U0001ffff])|(?P<symbol>[ ]?[^\x00-\x7f])"
    rf"|(?P<marks>[ ]?{_MARK}+[\r\n/]*)|(?P<newline>\s*[\r\n]+)|(?P<blank>[ \t]+)|(?P<control>[\x00-\x1f\x7f])"
)
_COST = {
    "word": 0.88,
    "marked": 1.63,
    "number": 1.0,
    "cjk": 0.54,
    "letters": 0.1,
    "emoji": 1.9,
    "symbol": 0.51,
    "marks": 1.22,
    "newline": 1.1,
    "blank": 1.45,
    "control": 1.0,
}
_VOWEL = re.compile(r"[aeiouyAEIOUY]")


def count_tokens(text: str) -> int:
    """About as many tokens as a model reads in it."""
    dense = 0.0

    def take(run: re.Match[str]) -> str:
        nonlocal dense
        word = run.group()
        if len(_TURN.findall(word)) * 4 < len(word):
            return word
        dense += len(word) * (0.58 if _HEX.fullmatch(word) else 0.67)
        return " "

    rest = _DENSE.sub(take, text)
    cost = dense
    for piece in _PIECE.finditer(rest):
        kind = str(piece.lastgroup)
        cost += _COST[kind]
        if kind == "word":
            cost += _price_word(piece.group())
        elif kind == "letters":
            cost += 0.29 * len(piece.group().strip())
        elif kind == "marks":
            marks = piece.group().strip()
            if len(set(marks)) > 1:
                cost += 0.44 * max(0, len(marks) - 2)
    return round(cost)


def _price_word(found: str) -> float:
    """What a word costs beyond the common one: long, without vowels, in capitals, or glued to what stands before it."""
    word = found.strip()
    more = 0.0 if found[0] == " " else 0.18 - _COST["word"]
    more += 0.55 * max(0, len(word) - 8)
    if len(word) > 2 and not _VOWEL.search(word):
        more += 1.1
    if len(word) > 3 and word.isupper():
        more += 0.27
    return more


@dataclass(frozen=True)
class Row:
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


def number_lines(lines: Iterable[str], first: int = 1) -> list[Row]:
    return [Row(first + at, text.rstrip()) for at, text in enumerate(lines)]


def collapse(rows: Sequence[Row]) -> list[Row]:
    """Repeated lines and progress, each as what it ended as, with how many lines it stands for."""
    kept: list[Row] = []
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
            kept.append(Row(first.number, "", last.number))
        else:
            what = "the same line" if first.text == last.text else "progress"
            kept.append(Row(first.number, f"{last.text}  [lines {first.number}-{last.number}: {what}]", last.number))
        at = end
    return kept


def _shape(text: str) -> str:
    """What is the same in every line of one progress bar or spinner; of any other line, the line."""
    return "\0" + "".join(_MOVING.sub("", text).split()) if _PROGRESS.search(text) else text


def fit_rows(rows: Sequence[Row], budget: int, explain: Callable[[int, int, int], str]) -> list[str]:
    """The lines that fit: head, tail, and between them every line that names an error, with its number.

    `explain` says of the lines from one to another, of which so many name an error, that they were left out, and how they are read.
    """
    rows = collapse(rows)
    costs = _count_within(rows, budget)
    if costs is not None:
        return [row.text for row in rows]
    budget = max(8, budget - 60)
    head = _take(rows, budget // 4)
    tail = _take(rows[len(head) :][::-1], budget // 2)[::-1]
    middle = rows[len(head) : len(rows) - len(tail)]
    if not middle:
        return [row.text for row in (*head, *tail)]
    wrong = [Row(row.number, f"{row.number}: {row.text}") for row in middle if _ERROR.search(row.text[:2000])]
    shown = _take(wrong, budget // 4)
    note = explain(middle[0].number, middle[-1].end, len(wrong))
    lines = [row.text for row in head] + [note] + [row.text for row in shown]
    if len(shown) < len(wrong):
        lines.append(f"[{len(wrong) - len(shown)} more name an error]")
    elif shown:
        lines.append("[…]")
    return lines + [row.text for row in tail]


def fit_head(rows: Sequence[Row], budget: int) -> list[Row]:
    """As many as fit from the first on, at least one."""
    return _take(rows, budget)


def _count_within(rows: Sequence[Row], budget: int) -> int | None:
    """Their tokens, or None beyond the budget; no more is counted than needed for that."""
    used = 0
    for row in rows:
        used += _count_line(row.text, budget)
        if used > budget:
            return None
    return used


def _take(rows: Sequence[Row], budget: int) -> list[Row]:
    taken: list[Row] = []
    used = 0
    for row in rows:
        cost = _count_line(row.text, budget)
        if used + cost > budget:
            if not taken:
                taken.append(Row(row.number, clip(row.text, budget), row.last))
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
    while room > 16 and count_tokens(text[: room // 2] + text[-room // 2 :]) > budget:
        room = room * 3 // 4
    half = max(8, room // 2)
    if len(text) <= 2 * half:
        return text
    return f"{text[:half]}[… {len(text) - 2 * half} characters …]{text[-half:]}"
