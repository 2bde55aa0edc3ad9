"""Plain text from what a program sent to a terminal, for indexing.

Where a rendered text exists it is used instead; this serves output that is only there as bytes. It keeps what stays
readable: escape sequences are dropped, carriage returns and backspaces overwrite, erasing a line erases it, and runs of
lines that differ only in their numbers (progress bars) become the last of them. It is no terminal: text placed by
cursor addressing comes out in the order it was sent.
"""

from __future__ import annotations

import re

_STRINGS = re.compile(r"\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)", re.DOTALL)
_ERASE = re.compile(r"\x1b\[[02]?[KJ]")
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~]|$)|\x9b[0-?]*[ -/]*[@-~]")
_CONTROLS = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")
_MOVES = re.compile(r"[\r\b]|\x1b\[[012]?K")
_VARYING = re.compile(r"\d+(?:[.,:]\d+)*|[#=\->█▏▎▍▌▋▊▉░▒▓━╸╺⠀-⣿|/\\.·]+|\s+")
_LEFT_OVER = dict.fromkeys((0x1B, 0x9B, 0x9C, 0x90))
MIN_RUN = 3


def plain_text(raw: bytes | str) -> str:
    """`raw` as lines of text, right-trimmed, progress collapsed."""
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    text = _STRINGS.sub("", text).replace("\r\n", "\n")
    lines = [_line(line) for line in text.split("\n")]
    return "\n".join(collapse_progress(lines))


def _line(line: str) -> str:
    if "\x1b" not in line and "\r" not in line and "\b" not in line and "\x9b" not in line:
        return _CONTROLS.sub("", line).rstrip()
    kept = _ESCAPES.sub(lambda m: m.group() if _MOVES.fullmatch(m.group()) else "", line)
    cells: list[str] = []
    at = 0
    for part in re.split(r"(\r|\x08|\x1b\[[012]?K)", _CONTROLS.sub("", kept)):
        if part == "\r":
            at = 0
        elif part == "\b":
            at = max(0, at - 1)
        elif part.startswith("\x1b"):
            if part[2:3] == "1":
                cells[:at] = [" "] * min(at, len(cells))
            elif part[2:3] == "2":
                cells = [" "] * at
            else:
                del cells[at:]
        elif part:
            cells[at : at + len(part)] = part
            at += len(part)
    return "".join(cells).translate(_LEFT_OVER).rstrip()


def collapse_progress(lines: list[str]) -> list[str]:
    """Of MIN_RUN or more lines in a row that differ only in numbers and bars, the last."""
    kept: list[str] = []
    run: list[str] = []
    shape: str | None = None
    for line in lines:
        here = _VARYING.sub("\x00", line) if any(c.isdigit() for c in line) else None
        if here is not None and here == shape and "%" in line:
            run.append(line)
            continue
        kept += run[-1:] if len(run) >= MIN_RUN else run
        run, shape = [line], here
    kept += run[-1:] if len(run) >= MIN_RUN else run
    return kept
