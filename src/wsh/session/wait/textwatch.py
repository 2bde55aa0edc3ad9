"""Has this text been printed since we began to look?

The stream is read as a person would: escape sequences removed, UTF-8 decoded across reads. What a full-screen program
draws by moving the cursor is found on the screen instead, in rows that did not match when we began. A caller that names the
generation it saw last also finds what was printed between that and now, so that sending and then waiting cannot miss anything.
"""

from __future__ import annotations

import codecs
import re
import time
from typing import TYPE_CHECKING

from wsh.session.wait.pattern import Pattern

if TYPE_CHECKING:
    from wsh.session.session import Session

_ESCAPE = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    rb"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM, APC
    rb"|\x1b[ -/]*[0-Z\\^-~]"  # two-character escapes
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]"
)
_OPEN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?\Z")
_CARRY_BYTES = 64 * 1024
_KEEP_CHARS = 8 * 1024
_SCREEN_EVERY_S = 0.05


class TextWatch:
    def __init__(self, session: Session, pattern: Pattern, since: int | None = None) -> None:
        self._session = session
        self._pattern = pattern
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._carry = b""
        self._text = ""
        fresh = since is None or since >= session.generation
        self._before = {row for row in self._rows() if pattern.search(row) is not None} if fresh else set()
        self._looked = 0.0
        self._looked_at = session.generation
        self.matched: str | None = None
        self._stop = session.output.tap(self._hear)
        if since is not None and not fresh:
            self._hear(since, session.output.read_recent(since))

    def close(self) -> None:
        self._stop()

    def found(self) -> bool:
        """Whether it has been seen; also looks at the screen, at most twenty times a second."""
        if self.matched is not None:
            return True
        now = time.monotonic()
        if self._session.generation != self._looked_at and (
            now - self._looked >= _SCREEN_EVERY_S or not self._session.output.backlog()
        ):
            self._looked, self._looked_at = now, self._session.generation
            for row in self._rows():
                hit = self._pattern.search(row)
                if hit is not None and row not in self._before:
                    self.matched = hit
                    return True
        return False

    def _rows(self) -> list[str]:
        return [str(line) for line in self._session.terminal.screen(styled=False).lines]

    def _hear(self, _offset: int, data: bytes) -> None:
        if self.matched is not None:
            return
        data = self._carry + data
        unfinished = _OPEN.search(data)
        self._carry = b""
        if unfinished and len(data) - unfinished.start() <= _CARRY_BYTES:
            self._carry, data = data[unfinished.start() :], data[: unfinished.start()]
        text = self._decoder.decode(_ESCAPE.sub(b"", data)).replace("\r\n", "\n")
        self._text = self._text[-_KEEP_CHARS:] + text
        hit = self._pattern.search(self._text)
        if hit is not None:
            self.matched = hit
