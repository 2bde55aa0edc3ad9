"""A session's recording in a file format: the whole of it, or its screen at one moment.

Everything is read from the session's folder and drawn by terminals of its own, so nothing of the live session is touched.
A recording holds whatever was printed, so it is drawn in a throw-away child: what kills the engine there kills nobody.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from wsh.session.command.output import LineRenderer
from wsh.session.record.playback import journal_up_to
from wsh.session.record.recording import Film, Printed, Recording
from wsh.session.recovery.gap import Gaps
from wsh.session.recovery.trial import attempt_aside
from wsh.terminal import Terminal, TerminalLimits
from wsh.terminal.engine.note import Work
from wsh.visual.export.animation import animate
from wsh.visual.export.asciicast import write_asciicast
from wsh.visual.export.clip import Clip, screen_at
from wsh.visual.export.screenshot import Theme, to_html, to_png, to_svg, to_text
from wsh.visual.picture.compositor import Picture
from wsh.visual.picture.painter import Painter, ViewShape
from wsh.wire.error import CapabilityMissing, from_wire

if TYPE_CHECKING:
    from wsh.session.session import Session
    from wsh.visual.stage import Stage

Format: TypeAlias = Literal["asciicast-v2", "asciicast-v3", "txt", "html", "svg", "svg-animated", "png"]
FORMATS: tuple[Format, ...] = ("asciicast-v2", "asciicast-v3", "txt", "html", "svg", "svg-animated", "png")

MEDIA_TYPES: dict[Format, str] = {
    "asciicast-v2": "application/x-asciicast",
    "asciicast-v3": "application/x-asciicast",
    "txt": "text/plain; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "svg": "image/svg+xml",
    "svg-animated": "image/svg+xml",
    "png": "image/png",
}


_DRAWN: tuple[Format, ...] = ("txt", "html", "svg", "svg-animated", "png")
_LIMIT_S = 120.0


async def export_aside(
    session: Session, format: Format, at_s: float | None, theme: Theme, from_s: float | None = None
) -> bytes:
    """The recording of `session`, all of it or from `from_s` on, drawn where nobody is hurt. Raises CapabilityMissing."""
    await journal_up_to(session, session.generation)
    make = partial(
        export,
        session.folder.path,
        *session.first_size,
        format,
        title=session.title or session.name,
        command=session.command,
        at_s=at_s,
        from_s=from_s,
        theme=theme,
        nonces=session.nonces,
        gaps=session.output.gaps,
    )
    if format not in _DRAWN and from_s is None:
        return await asyncio.to_thread(make)
    fate = await attempt_aside(make, _LIMIT_S, 2 * _LIMIT_S)
    if fate.lived:
        return bytes(fate.answer)
    if fate.how == "failed" and fate.answer:
        raise from_wire(fate.answer)
    raise CapabilityMissing(
        f"The terminal engine cannot draw the recording of session {session.name!r}: it dies of it.",
        hint="Export it as asciicast-v2, which is what the session printed and needs no engine.",
    )


def export(
    folder: Path,
    rows: int,
    cols: int,
    format: Format,
    *,
    title: str = "",
    command: str = "",
    at_s: float | None = None,
    from_s: float | None = None,
    theme: Theme = "dark",
    nonces: tuple[str, ...] = (),
    gaps: Gaps | None = None,
) -> bytes:
    """The recording in `folder`. `at_s` picks the moment for the still pictures; left out, it is the last one. The others begin at `from_s`."""
    whole = Recording(folder, rows, cols, gaps if format in _DRAWN or from_s is not None else None, nonces)
    recording: Film = whole
    if from_s is not None and format not in ("svg", "png"):
        recording = Clip(whole, from_s, opening=format not in ("txt", "html"))
    if format == "asciicast-v2" or format == "asciicast-v3":
        version: Literal[2, 3] = 2 if format == "asciicast-v2" else 3
        lines = write_asciicast(recording, version, title=title, command=command)
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    if format == "txt" or format == "html":
        styled = _all_lines(recording)
        text = to_text(styled) if format == "txt" else to_html(styled, title, theme)
        return text.encode("utf-8", "replace")
    if format == "svg-animated":
        return animate(recording, title, theme).encode("utf-8", "replace")
    terminal = screen_at(whole, at_s)
    with terminal:
        styled_rows: list[object] = list(terminal.styled_rows())
        return draw_still(styled_rows, terminal.cols, format, title, theme)


def draw_still(lines: list[Any], cols: int, format: Literal["svg", "png"], title: str, theme: Theme) -> bytes:
    if format == "svg":
        return to_svg(lines, cols, title, theme).encode("utf-8", "replace")
    return to_png(lines, cols, theme)


def compose_lines(terminal: Terminal, stage: Stage) -> list[Any]:
    """The whole picture of a session as styled lines: what a viewer of just its size shows."""
    shape = ViewShape(stage.rows, stage.cols)
    painter = Painter(terminal, stage, Picture(terminal, stage), shape, 0)
    note = terminal.note
    mine = note is not None and note.begin(Work.READ)
    try:
        with Terminal(stage.rows, stage.cols, TerminalLimits(scrollback_lines=0)) as shown:
            shown.feed(painter.full())
            return list(shown.styled_rows())
    finally:
        if note is not None and mine:
            note.end()


def _all_lines(recording: Film) -> list[Any]:
    renderer = LineRenderer(recording.rows, recording.cols, styled=True)
    lines: list[object] = []
    for moment in recording.moments():
        if isinstance(moment, Printed):
            lines += renderer.feed(moment.data)
    return [*lines, *renderer.finish()]
