from __future__ import annotations

import os
import sys
import time

from wsh.cli.declare import Argument, Failure, Option, WrongUse, command, json_option
from wsh.cli.export import fetch
from wsh.cli.output import print_json
from wsh.client import tty
from wsh.wire.json.text import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


_LONGEST_S = 1e9
"""No recording takes so long; larger times and such as NaN are damage."""


@command(
    "play",
    Option("--speed", "-s", kind=float, default=1.0, show_default=True, help="Times as fast as it was."),
    Option("--idle-limit", "-i", kind=float, metavar="SECONDS", help="Cut longer pauses to this."),
    json_option,
    Argument("what", complete="session"),
)
def play(speed: float, idle_limit: float | None, as_json: bool, what: str) -> None:
    """Play WHAT in this terminal: an asciicast file, or the recording of a session. Ctrl+C stops.

    With --json nothing is played: what would be is told, with the time that it would take.
    """
    if not 0 < speed < float("inf"):
        raise WrongUse("--speed must be more than 0.")
    if os.path.isfile(what):
        with open(what, encoding="utf-8", errors="replace") as file:
            text = file.read()
    else:
        text = fetch(what, "asciicast-v2", None, "dark").decode()
    if as_json:
        moments = [(_shorten(pause, speed, idle_limit), data) for pause, data in _moments(text)]
        lasts_s = sum(pause for pause, _ in moments)
        print_json({"what": what, "moments": [list(moment) for moment in moments], "duration_s": lasts_s})
        return
    before = _stop_hearing()
    try:
        for pause, data in _moments(text):
            time.sleep(_shorten(pause, speed, idle_limit))
            tty.write_all(1, data.encode("utf-8", "surrogateescape"))
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if sys.stdout.isatty():
            # Some of what is switched off moves the cursor, and the shell goes on where the recording ended.
            tty.write_all(1, b"\x1b7" + tty.RESTORE + b"\x1b8\x1b[0m\r\n")
        if before is not None:
            import termios

            termios.tcsetattr(0, termios.TCSAFLUSH, before)  # drops what nobody was to hear


def _stop_hearing() -> list[Any] | None:
    """Let the terminal's answers to questions of the recorded program not be shown. Returns the modes from before; None without a terminal."""
    if not tty.is_terminal():
        return None
    import termios
    from tty import setcbreak

    before = termios.tcgetattr(0)
    setcbreak(0, termios.TCSADRAIN)
    return before


def _shorten(pause_s: float, speed: float, idle_limit: float | None) -> float:
    return max(0.0, (pause_s if idle_limit is None else min(pause_s, idle_limit)) / speed)


def _moments(text: str) -> Iterator[tuple[float, str]]:
    """(pause before it, text) of every output in an asciicast of version 2 or 3."""
    # Only a line feed ends a line: text may hold other characters that Python would take for one.
    lines = iter(text.split("\n"))
    try:
        version = read_json(next(lines))["version"]
        if version not in (2, 3):
            raise ValueError(version)
    except (StopIteration, ValueError, KeyError, TypeError):
        raise Failure("that is not an asciicast of version 2 or 3") from None
    before = pending = 0.0
    for number, line in enumerate(lines, 2):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            at, code, data = read_json(line)
            if not abs(at) < _LONGEST_S or (code == "o" and not isinstance(data, str)):
                raise ValueError(at)
            pending += at if version == 3 else at - before
        except (ValueError, TypeError):
            raise Failure(f"line {number} of the recording is damaged") from None
        before = at
        if code == "o":
            yield pending, data
            pending = 0.0
