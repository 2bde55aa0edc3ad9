"""A candidate answer and its form on the wire.

Finders fill `Candidate`s with all that ranking needs; the few that are shown are then rendered, which is when text is
read and snippets are made. Ids start with the kind of document: `f` for a chunk of a file, `t` for a transcript.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wsh.wire.json.object import JsonObject
from wsh.workspace.error import InvalidArguments
from wsh.workspace.search.rank import Score

_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
"""The years 1 and 9999."""


def encode_id(kind: str, uid: int) -> str:
    raw = uid.to_bytes(8, "big", signed=True)
    return f"{kind}_{base64.b32encode(raw).decode('ascii').rstrip('=').lower()}"


def decode_id(text: str) -> tuple[str, int]:
    kind, _, body = text.partition("_")
    try:
        raw = base64.b32decode(body.upper() + "=" * (-len(body) % 8))
    except ValueError:
        raw = b""
    if kind not in ("f", "t") or len(raw) != 8:
        raise InvalidArguments(f"{text[:80]!r} is not the id of a hit.", hint="Use an id from a search result.")
    return kind, int.from_bytes(raw, "big", signed=True)


def iso_time(seconds: float) -> str:
    """As ISO 8601; a time that it cannot say is the nearest that it can."""
    seconds = max(_FIRST_S, min(seconds, _LAST_S))
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Candidate:
    """One chunk (or command) that matches. `spans` are bytes in the whole text, for literals and patterns."""

    row: int
    uid: int
    origin: str  # "file" or "transcript"
    score: Score
    facts: JsonObject
    file: int = 0
    lines: tuple[int, int] = (1, 1)
    spans: list[tuple[int, int]] = field(default_factory=list)
    count: int = 0

    @property
    def order(self) -> tuple[float, str, int]:
        """Best first; equal scores in a stable order."""
        return (-self.score.value, str(self.facts.get("path") or self.facts.get("session") or ""), self.lines[0])
