"""The later part of a recording: it begins with the screen as it was at that moment, and what scrolled off before is not in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from wsh.session.record.recording import Film, Moment, Printed, RecordedSize
from wsh.terminal import Terminal, TerminalLimits


class Clip:
    """`film` from `from_s` seconds on; with `opening` the screen of that moment comes first."""

    def __init__(self, film: Film, from_s: float, *, opening: bool) -> None:
        self._film = film
        self._from_s = from_s
        self._opening = b""
        self.rows, self.cols = film.rows, film.cols
        if opening:
            with screen_at(film, from_s) as terminal:
                self.rows, self.cols = terminal.rows, terminal.cols
                self._opening = terminal.replay(0)
        else:
            for moment in film.moments():
                if isinstance(moment, RecordedSize) and moment.at_s <= from_s:
                    self.rows, self.cols = moment.rows, moment.cols

    @property
    def started(self) -> float:
        return self._film.started + self._from_s

    @property
    def duration_s(self) -> float:
        return max(0.0, self._film.duration_s - self._from_s)

    def moments(self) -> Iterator[Moment]:
        if self._opening:
            yield Printed(0.0, 0, self._opening)
        for moment in self._film.moments():
            if moment.at_s > self._from_s:
                yield replace(moment, at_s=moment.at_s - self._from_s)


def screen_at(film: Film, at_s: float | None) -> Terminal:
    """A terminal in the state that the session had at `at_s` seconds. The caller closes it."""
    terminal = Terminal(film.rows, film.cols, TerminalLimits(scrollback_lines=0))
    for moment in film.moments():
        if at_s is not None and moment.at_s > at_s:
            break
        if isinstance(moment, Printed):
            terminal.feed(moment.data)
            terminal.take_replies()
            terminal.take_events()
        elif isinstance(moment, RecordedSize):
            terminal.resize(moment.rows, moment.cols)
    return terminal
