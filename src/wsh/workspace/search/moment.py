"""Times as callers write them: ISO 8601 dates and times, or how long ago (`30m`, `12h`, `7d`)."""

from __future__ import annotations

import re
from datetime import datetime

from wsh.workspace.error import InvalidArguments

_AGO = re.compile(r"(\d{1,6})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_moment(argument: str, text: str, now: float) -> float:
    """Seconds since the epoch. A time without a zone is local."""
    ago = _AGO.fullmatch(text.strip())
    if ago:
        return now - int(ago.group(1)) * _SECONDS[ago.group(2)]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise InvalidArguments(
            f"{argument}: {text[:80]!r} is not a time.",
            hint="Write 2026-01-31, 2026-01-31T12:00:00Z, or how long ago: 30m, 12h, 7d.",
            argument=argument,
        ) from None
