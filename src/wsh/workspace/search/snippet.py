"""The lines of a hit that are worth showing, with the places of the matches in them.

Lines count from 1, places within a line count characters from 0 and exclude the end. Long lines are clipped around
their first match, and the places are given as they are in the clipped line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from wsh.wire.json.object import JsonObject
from wsh.workspace.search.query import Term

MAX_LINES = 24
MAX_WIDTH = 300
_LEAD = 60
_MAX_MARKS = 400


@dataclass(frozen=True, slots=True)
class MatchMark:
    """A match on one line: line from 0, characters from 0. `term` tells the words of a query apart."""

    line: int
    start: int
    end: int
    term: int = 0


def mark_spans(data: bytes, spans: list[tuple[int, int]]) -> list[MatchMark]:
    """Byte spans of a UTF-8 text as marks; a span over several lines becomes one mark per line.

    The text may have become shorter since it was searched: what lies beyond its end is left out.
    """
    marks: list[MatchMark] = []
    counted = line = 0  # `line` is the line of the byte `counted`
    for start, end in spans[:_MAX_MARKS]:
        line, counted = line + data.count(b"\n", counted, start), start
        at, row = start, line
        while at < min(end, len(data)):
            begin = data.rfind(b"\n", 0, at) + 1
            newline = data.find(b"\n", at)
            line_end = len(data) if newline < 0 else newline
            body = data[at : min(end, line_end)].decode("utf-8", "replace")
            if body:
                column = len(data[begin:at].decode("utf-8", "replace"))
                marks.append(MatchMark(row, column, column + len(body)))
            at, row = line_end + 1, row + 1
    return marks


def mark_terms(text: str, terms: list[Term], first_line: int = 0) -> list[MatchMark]:
    """Where the words of a query stand in `text`, humps and underscores respected."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    marks: list[MatchMark] = []
    for number, term in enumerate(terms):
        pattern = re.compile(r"[\W_]*".join(re.escape(token) for token in _parts(term)), re.IGNORECASE)
        found = 0
        for match in pattern.finditer(text):
            start, end = match.span()
            if not (_begins(text, start) and (term.prefix or _ends(text, end))):
                continue
            line = bisect_right(starts, start) - 1
            if "\n" in match.group():
                end = text.index("\n", start)
            marks.append(MatchMark(first_line + line, start - starts[line], end - starts[line], number))
            found += 1
            if found >= _MAX_MARKS // max(1, len(terms)):
                break
    marks.sort(key=lambda mark: (mark.line, mark.start))
    return marks


def _parts(term: Term) -> tuple[str, ...]:
    return term.tokens


def _begins(text: str, at: int) -> bool:
    return at == 0 or not text[at - 1].isalnum() or _parts_words(text, at)


def _ends(text: str, at: int) -> bool:
    return at >= len(text) or not text[at].isalnum() or _parts_words(text, at)


def _parts_words(text: str, at: int) -> bool:
    """Whether a word of a name such as `readFile2` begins at this letter."""
    before, here = text[at - 1], text[at]
    if before.isdigit() != here.isdigit():
        return True
    after = text[at + 1] if at + 1 < len(text) else " "
    return here.isupper() and (not before.isupper() or after.islower())


def choose_line(marks: list[MatchMark], reach: int) -> int | None:
    """The line to show first: where most of the query's words stand close together."""
    if not marks:
        return None
    best_line, best = marks[0].line, 0
    lines = sorted({mark.line for mark in marks})
    if len(lines) > 200:
        return best_line
    for line in lines:
        near = {mark.term for mark in marks if line <= mark.line <= line + reach}
        if len(near) > best:
            best_line, best = line, len(near)
    return best_line


def make_snippet(
    lines: list[str], first: int, last: int, marks: list[MatchMark], context: int, *, clip: bool = True
) -> JsonObject:
    """The snippet of a hit that spans lines `first` to `last` (from 0, inclusive). Context may reach beyond it."""
    anchor = choose_line(marks, max(2, context))
    if anchor is None:
        top, bottom = first, min(last, first + 2 * context)
    else:
        reach = [mark.line for mark in marks if anchor <= mark.line <= anchor + max(context, 1) * 2]
        top, bottom = anchor - context, max(reach) + context
    top, bottom = max(0, top), min(len(lines) - 1, bottom)
    bottom = min(bottom, top + max(MAX_LINES, 2 * context + 1) - 1)
    shown: list[str] = []
    places: list[dict[str, int]] = []
    for number in range(top, bottom + 1):
        line = lines[number].rstrip("\r")
        here = [mark for mark in marks if mark.line == number]
        shift = 0
        if len(line) > MAX_WIDTH:
            cut = max(0, here[0].start - _LEAD) if here else 0
            cut = min(cut, len(line) - MAX_WIDTH)
            clipped = line[cut : cut + MAX_WIDTH]
            line = ("…" if cut else "") + clipped + ("…" if cut + MAX_WIDTH < len(line) else "")
            shift = cut - (1 if cut else 0)
        for mark in here:
            start, end = mark.start - shift, min(mark.end - shift, len(line))
            if 0 <= start < end:
                places.append({"line": number + 1, "start": start, "end": end})
        shown.append(line)
    return {"startLine": top + 1, "text": "\n".join(shown), "matches": places}
