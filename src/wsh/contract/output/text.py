"""What a terminal printed, as text: which bytes can be rendered by themselves, and who renders them.

Rendering is another room's work and comes in as a function. What is decided here is where a reading may end: never inside
of an escape sequence, nor between a carriage return and its line feed, or the next reading would begin with half of it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from wsh.contract.identity import Identity
from wsh.contract.output.log import Reading

RenderText: TypeAlias = Callable[[bytes, int, int], Awaitable[str]]
"""Raw output of a terminal with so many rows and columns as text: lines end in line feeds, nothing else controls."""

LOOK_BACK = 4096
"""A sequence that is longer than this is not waited for."""
_UNFINISHED = re.compile(
    rb"""(?:
        \r                                              # may be followed by its line feed
      | \x1b(?:
            \[[0-?]*[ -/]*                              # CSI without its final byte
          | [ -/]*                                      # ESC, or ESC with intermediates alone
          | [\]PX^_](?:[^\x07\x1b\x18\x1a]|\x1b(?!\\))*  # OSC, DCS, SOS, PM, APC without their end
        )
    )\Z""",
    re.VERBOSE,
)


def find_whole(data: bytes) -> int:
    """How many bytes of `data` can be rendered without what follows."""
    tail = data[-LOOK_BACK:]
    found = _UNFINISHED.search(tail)
    return len(data) - (len(tail) - found.start()) if found is not None else len(data)


async def read_text(identity: Identity, cursor: int | None, max_bytes: int, render: RenderText) -> Reading:
    """What `identity`'s terminal printed since `cursor`, rendered. Output that may still change its meaning waits."""
    chunk = identity.log.raw.read(cursor, max_bytes)
    data, more = chunk.data, chunk.next_cursor < identity.log.end
    if more:
        data = data[: data.rfind(b"\n") + 1] or data
    if more or identity.running:
        data = data[: find_whole(data)] or (data if more else b"")
    text = await render(data, identity.rows, identity.cols) if data else ""
    return Reading(text, "", chunk.offset, chunk.offset + len(data), chunk.dropped, more)
