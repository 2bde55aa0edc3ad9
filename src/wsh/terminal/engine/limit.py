"""What one terminal may keep, and how the library is told.

The library drops lines in pages of some hundred, when the pages' bytes or their lines pass a limit. A page dropped for
its bytes is recycled, one dropped for its lines is returned to the system and faulted in anew, which costs four fifths
of the speed. So the byte limit is set to what the promised lines need in pages of the standard size, and the line limit
stands a little above. Text with very many styles or combining marks needs larger pages; when it is seen to lose lines
too early, the byte limit is lifted (to a ceiling: then lines do get fewer) and the line limit takes over.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024

GUARANTEED_LINES = 1024
"""Lines that the library keeps even where fewer were asked for, so that line numbers survive a step of feeding."""

# Measured: a standard page takes 393,216 to 403,298 bytes, and holds 578 rows of 80 cells, 233 of 200, 46 of 1000.
_PAGE_BYTES = 405_504
_PAGE_CELLS_LEAST = 368_000
_PAGE_CELLS_MOST = 384_000


@dataclass(frozen=True, slots=True)
class TerminalLimits:
    """Ceilings of one terminal. Lines are the promise; bytes only stop input made to bloat them."""

    scrollback_lines: int = 10_000
    scrollback_bytes: int = 256 * MIB
    bloat_bytes: int = 24 * MIB
    """What text with very many styles, links or combining marks may take beyond twice what plain text would."""
    continuation_bytes: int = MIB
    """Longest unfinished escape sequence that a snapshot can carry."""
    clipboard_bytes: int = MIB
    reply_bytes: int = MIB
    """Answers that may wait to be taken; more are dropped."""
    events: int = 1000
    """Events that may wait to be taken; the oldest go first."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What the library is told."""

    lines: int
    bytes: int


def row_bytes(cols: int) -> int:
    return 8 * cols + 8


def engine_limits(limits: TerminalLimits, rows: int, cols: int, heavy: bool) -> EngineLimits:
    """Limits under which the library keeps at least the promised lines; `heavy` text needs larger pages."""
    wanted = max(limits.scrollback_lines, GUARANTEED_LINES)
    page_rows = max(1, _PAGE_CELLS_LEAST // row_bytes(cols))
    page_rows_most = _PAGE_CELLS_MOST // row_bytes(cols) + 2
    pages = -(-(wanted + rows) // page_rows) + 1
    plain_bytes = pages * _PAGE_BYTES
    if heavy:
        return EngineLimits(wanted + page_rows_most, min(2 * plain_bytes + limits.bloat_bytes, limits.scrollback_bytes))
    return EngineLimits((pages + 2) * page_rows_most, min(plain_bytes, limits.scrollback_bytes))


def trim_lines(keep: int, cols: int) -> int:
    """The line limit that makes the library drop what it can while `keep` lines stay."""
    return keep + _PAGE_CELLS_MOST // row_bytes(cols) + 2 if keep else 1


def step_bytes(limits: TerminalLimits) -> int:
    """Bytes that may be fed before looking: fewer than the lines kept, as each byte may be a line."""
    return min(64 * 1024, max(limits.scrollback_lines, GUARANTEED_LINES) - GUARANTEED_LINES // 2)
