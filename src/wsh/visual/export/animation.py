"""A recording as an animated SVG: one file that plays by itself wherever a picture may stand, without a script.

The frames stand side by side in a strip, and a CSS animation moves the strip behind a window of one frame's size. A row that looks
the same in many frames is drawn once and referred to. Where nothing may move (`prefers-reduced-motion`, a viewer without
animations) the last frame is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wsh.session.record.recording import Film, Printed, RecordedSize
from wsh.terminal import Terminal, TerminalLimits
from wsh.visual.export.screenshot import CELL_H, CELL_W, PAD, Palette, Theme, draw_svg_row, escape_xml

FRAMES_PER_S = 15
MAX_FRAMES = 1000
"""A longer recording has fewer frames per second."""
LONGEST_PAUSE_S = 2.0
"""Longer silences are shortened to this."""
LAST_FRAME_S = 4.0


@dataclass(frozen=True)
class AnimationFrame:
    """What the screen looks like from `at_s` on. Each row is its SVG, drawn at the top of the window."""

    at_s: float
    rows: tuple[str, ...]
    cols: int
    cursor: tuple[int, int] | None


def animate(recording: Film, title: str, theme: Theme = "dark") -> str:
    palette = Palette(theme)
    frames = list(_frames(recording, palette))
    width = max(frame.cols for frame in frames) * CELL_W + 2 * PAD
    height = max(len(frame.rows) for frame in frames) * CELL_H + 2 * PAD
    ids = {row: f"r{n}" for n, row in enumerate(dict.fromkeys(r for f in frames for r in f.rows if r))}
    rows = "".join(f'<g id="{name}">{row}</g>' for row, name in ids.items())
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape_xml(title)}</title>",
        _style([frame.at_s for frame in frames], width),
        f"<defs>{rows}</defs>",
        f'<rect width="100%" height="100%" rx="6" fill="{palette.ground}"/>',
        '<g id="strip" font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14">',
    ]
    for number, frame in enumerate(frames):
        out.append(f'<svg x="{number * width:.1f}" width="{width:.0f}" height="{height:.0f}">')
        out += [f'<use href="#{ids[row]}" y="{n * CELL_H}"/>' for n, row in enumerate(frame.rows) if row]
        if frame.cursor is not None:
            row, col = frame.cursor
            out.append(
                f'<rect x="{PAD + col * CELL_W:.1f}" y="{PAD + row * CELL_H}" width="{CELL_W}" height="{CELL_H}" '
                f'fill="{palette.text}" opacity=".5"/>'
            )
        out.append("</svg>")
    out.append("</g></svg>\n")
    return "\n".join(out)


def _style(starts: list[float], width: float) -> str:
    whole = starts[-1] + LAST_FRAME_S
    steps = "".join(
        f"{100 * at / whole:.3f}%{{transform:translateX({-number * width:.1f}px)}}" for number, at in enumerate(starts)
    )
    last = f"transform:translateX({-(len(starts) - 1) * width:.1f}px)"
    return (
        f"<style>@keyframes play{{{steps}100%{{{last}}}}}"
        f"#strip{{{last};animation:play {whole:.2f}s steps(1,end) infinite}}"
        "@media(prefers-reduced-motion:reduce){#strip{animation:none}}</style>"
    )


def _frames(recording: Film, palette: Palette) -> Iterator[AnimationFrame]:
    """The screen each time that it has changed and a frame is due; at least one frame."""
    interval = max(1 / FRAMES_PER_S, recording.duration_s / MAX_FRAMES)
    drawn: dict[str, str] = {}
    shown: AnimationFrame | None = None
    cut_s = 0.0  # what was taken out of pauses so far
    before_s = due_s = 0.0
    with Terminal(recording.rows, recording.cols, TerminalLimits(scrollback_lines=0)) as terminal:
        for moment in recording.moments():
            if moment.at_s >= due_s and moment.at_s > before_s:
                # Everything of the moments before has been fed: that is what was seen until now.
                frame = _draw(terminal, before_s - cut_s, palette, drawn)
                if shown is None or _differ(frame, shown):
                    yield (shown := frame)
                    due_s = before_s + interval
            if isinstance(moment, Printed):
                cut_s += max(0.0, moment.at_s - before_s - LONGEST_PAUSE_S)
                before_s = moment.at_s
                terminal.feed(moment.data)
                terminal.take_replies()
                terminal.take_events()
            elif isinstance(moment, RecordedSize):
                terminal.resize(moment.rows, moment.cols)
        last = _draw(terminal, before_s - cut_s, palette, drawn)
        if shown is None or _differ(last, shown):
            yield last


def _differ(one: AnimationFrame, other: AnimationFrame) -> bool:
    return (one.rows, one.cols, one.cursor) != (other.rows, other.cols, other.cursor)


def _draw(terminal: Terminal, at_s: float, palette: Palette, drawn: dict[str, str]) -> AnimationFrame:
    rows = []
    for line in terminal.styled_rows():
        key = repr(line)
        if key not in drawn:
            drawn[key] = "".join(draw_svg_row(line, PAD, palette))
        rows.append(drawn[key])
    cursor = terminal.cursor
    return AnimationFrame(at_s, tuple(rows), terminal.cols, (cursor.row, cursor.col) if cursor.visible else None)
