"""Cutting a text into chunks: definitions, headings, windows of lines.

Chunks of a file do not overlap and together hold every line of it, so each match lies in exactly one of them and the
index holds each word once. All cuts are at line starts. Texts are UTF-8 bytes here, because the parser counts so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from wsh.workspace.file.language import find_parser
from wsh.workspace.file.symbol import Symbol, find_symbols

WINDOW_LINES = 60
MAX_LINES = 140
MAX_BYTES = 24 * 1024

_CLOSERS = b" \t\r\n\f{}()[];,"


@dataclass(slots=True)
class Chunk:
    """Lines count from 1 and include the last; bytes exclude the end. `scope` names what the chunk lies in."""

    kind: str
    name: str
    scope: str
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int


def cut(data: bytes, language: str, *, parse: bool = True) -> list[Chunk]:
    """The chunks of a text. `parse=False` leaves grammars out, for a text on which one has crashed."""
    if not data:
        return []
    if language == "markdown":
        found = _by_headings(data, _markdown_headings(data))
    elif language in _HEADING_STYLES:
        found = _by_headings(data, _HEADING_STYLES[language](data))
    else:
        parser = find_parser(language) if parse else None
        if parser is None:
            symbols = []
        else:
            tree = parser.parse(data)
            symbols = find_symbols(tree.root_node, language)
            del tree
        found = _by_symbols(data, symbols)
    return _split_large(data, found)


# by symbols


def _by_symbols(data: bytes, symbols: list[Symbol]) -> list[Chunk]:
    chunks: list[Chunk] = []
    last_line = data.count(b"\n") + (0 if data.endswith(b"\n") else 1)
    _fill(data, symbols, 0, len(data), 1, last_line, "block", "", "", chunks)
    return chunks


def _fill(
    data: bytes,
    symbols: Iterable[Symbol],
    start: int,
    end: int,
    line: int,
    last_line: int,
    kind: str,
    name: str,
    scope: str,
    chunks: list[Chunk],
) -> None:
    """Append the chunks of `data[start:end]`: those of `symbols`, and what lies between them as `kind name`."""
    inner = f"{scope} {name}".strip() if name else scope
    for symbol in symbols:
        above = data.rfind(b"\n", 0, symbol.start_byte) + 1
        if above < start:
            continue  # begins on the line where the one before ended
        if symbol.end_byte and data[symbol.end_byte - 1] == 10:
            below, end_line = symbol.end_byte, symbol.end_row
        else:
            newline = data.find(b"\n", symbol.end_byte)
            below, end_line = (newline + 1 or len(data)), symbol.end_row + 1
        below, end_line = min(below, end), min(end_line, last_line)
        if below <= above:
            continue
        _gap(data, start, above, line, symbol.start_row, kind, name, scope, chunks)
        if symbol.children and all(child.start_row > symbol.start_row for child in symbol.children):
            _fill(
                data,
                symbol.children,
                above,
                below,
                symbol.start_row + 1,
                end_line,
                symbol.kind,
                symbol.name,
                inner,
                chunks,
            )
        else:
            chunks.append(Chunk(symbol.kind, symbol.name, inner, above, below, symbol.start_row + 1, end_line))
        start, line = below, end_line + 1
    _gap(data, start, end, line, last_line, kind, name, scope, chunks)


def _gap(
    data: bytes,
    start: int,
    end: int,
    line: int,
    last_line: int,
    kind: str,
    name: str,
    scope: str,
    chunks: list[Chunk],
) -> None:
    if end <= start:
        return
    if chunks and not data[start:end].strip(_CLOSERS):
        chunks[-1].end_byte, chunks[-1].end_line = end, last_line
        return
    chunks.append(Chunk(kind, name, scope, start, end, line, last_line))


# by headings

Heading = tuple[int, str, int, int]  # level, title, byte where its line starts, line number


def _lines(data: bytes) -> Iterable[tuple[int, int, bytes]]:
    at = 0
    for number, raw in enumerate(data.split(b"\n"), 1):
        yield number, at, raw
        at += len(raw) + 1


def _title(raw: bytes) -> str:
    return " ".join(raw.decode("utf-8", "replace").split())[:200]


_ATX = re.compile(rb" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t\r]*$")
_SETEXT = re.compile(rb" {0,3}(=+|-{2,})[ \t\r]*")
_NO_TITLE = (b"-", b"|", b">", b"#", b"*", b"```")
_FENCE = re.compile(rb" {0,3}(```+|~~~+)")


def _markdown_headings(data: bytes) -> list[Heading]:
    found: list[Heading] = []
    fence = b""
    before: tuple[int, int, bytes] = (0, 0, b"")
    for number, at, raw in _lines(data):
        fenced = _FENCE.match(raw)
        if fenced:
            mark = fenced.group(1)
            if not fence:
                fence = mark
            elif mark.startswith(fence[:3]) and len(mark) >= len(fence):
                fence = b""
        elif not fence:
            atx = _ATX.match(raw)
            if atx:
                found.append((len(atx.group(1)), _title(atx.group(2)), at, number))
            elif _SETEXT.fullmatch(raw) and before[2].strip() and not before[2].lstrip().startswith(_NO_TITLE):
                found.append((1 if b"=" in raw else 2, _title(before[2]), before[1], before[0]))
        before = (number, at, raw)
    return found


def _rst_headings(data: bytes) -> list[Heading]:
    found: list[Heading] = []
    levels: dict[bytes, int] = {}
    before: tuple[int, int, bytes] = (0, 0, b"")
    for number, at, raw in _lines(data):
        line, title = raw.rstrip(), before[2].rstrip()
        ruled = len(line) >= 3 and line[:1] in b"=-`:'\"~^_*+#<>." and line == line[:1] * len(line)
        if ruled and title and title != title[:1] * len(title) and len(line) >= len(title.decode("utf-8", "replace")):
            level = levels.setdefault(line[:1], len(levels) + 1)
            found.append((level, _title(title), before[1], before[0]))
        before = (number, at, raw)
    return found


def _marked_headings(pattern: re.Pattern[bytes], data: bytes) -> list[Heading]:
    found: list[Heading] = []
    for number, at, raw in _lines(data):
        match = pattern.match(raw)
        if match:
            found.append((len(match.group(1)), _title(match.group(2)), at, number))
    return found


_TEX_LEVEL = {b"part": 1, b"chapter": 2, b"section": 3, b"subsection": 4, b"subsubsection": 5}


def _tex_headings(data: bytes) -> list[Heading]:
    found: list[Heading] = []
    for number, at, raw in _lines(data):
        match = re.match(rb"\s*\\(part|chapter|section|subsection|subsubsection)\*?\{(.*?)\}", raw)
        if match:
            found.append((_TEX_LEVEL[match.group(1)], _title(match.group(2)), at, number))
    return found


_HEADING_STYLES = {
    "rst": _rst_headings,
    "asciidoc": lambda data: _marked_headings(re.compile(rb"(={1,6})[ \t]+(.*\S)"), data),
    "org": lambda data: _marked_headings(re.compile(rb"(\*{1,8})[ \t]+(.*\S)"), data),
    "latex": _tex_headings,
    "text": _rst_headings,
}


def _by_headings(data: bytes, headings: list[Heading]) -> list[Chunk]:
    last_line = data.count(b"\n") + (0 if data.endswith(b"\n") else 1)
    if not headings:
        return [Chunk("block", "", "", 0, len(data), 1, last_line)]
    chunks: list[Chunk] = []
    first = headings[0]
    if data[: first[2]].strip():
        chunks.append(Chunk("block", "", "", 0, first[2], 1, first[3] - 1))
        start, line = first[2], first[3]
    else:
        start, line = 0, 1
    above: list[tuple[int, str]] = []
    for at, (level, title, _, _) in enumerate(headings):
        following = headings[at + 1] if at + 1 < len(headings) else None
        end, end_line = (len(data), last_line) if following is None else (following[2], following[3] - 1)
        above = [entry for entry in above if entry[0] < level]
        chunks.append(Chunk("heading", title, " ".join(entry[1] for entry in above), start, end, line, end_line))
        above.append((level, title))
        start, line = end, end_line + 1
    return chunks


# large ones


def _split_large(data: bytes, chunks: list[Chunk]) -> list[Chunk]:
    result: list[Chunk] = []
    for chunk in chunks:
        lines = chunk.end_line - chunk.start_line + 1
        limit = WINDOW_LINES + WINDOW_LINES // 2 if chunk.kind == "block" else MAX_LINES
        if lines <= limit and chunk.end_byte - chunk.start_byte <= MAX_BYTES:
            result.append(chunk)
        else:
            result.extend(_windows(data, chunk))
    return result


def _windows(data: bytes, chunk: Chunk) -> Iterable[Chunk]:
    """Pieces of about WINDOW_LINES, cut at a blank line where there is one near."""
    start, line, at, number = chunk.start_byte, chunk.start_line, chunk.start_byte, chunk.start_line
    while at < chunk.end_byte:
        newline = data.find(b"\n", at, chunk.end_byte)
        following = chunk.end_byte if newline < 0 else newline + 1
        taken = number - line + 1
        blank = not data[at:following].strip()
        full = taken >= WINDOW_LINES + 20 or following - start >= MAX_BYTES
        if following < chunk.end_byte and chunk.end_line - number >= 10 and (full or taken >= WINDOW_LINES and blank):
            yield Chunk(chunk.kind, chunk.name, chunk.scope, start, following, line, number)
            start, line = following, number + 1
        at, number = following, number + 1
    if start < chunk.end_byte:
        yield Chunk(chunk.kind, chunk.name, chunk.scope, start, chunk.end_byte, line, chunk.end_line)
