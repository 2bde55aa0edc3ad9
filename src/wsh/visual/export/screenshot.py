"""A screen as a picture that stands still: text, HTML, SVG, PNG.

Everything is drawn from styled lines, with the colours of one palette, so that all of them look the same. PNG needs Pillow and a monospace
font on this machine; without them it is a missing capability, said as such.
"""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from wsh.look import load
from wsh.visual.picture.cell import width_of
from wsh.wire.error import CapabilityMissing
from wsh.wire.json.object import JsonObject

Theme: TypeAlias = Literal["dark", "light"]
StyledLine: TypeAlias = Sequence[JsonObject]

CELL_W, CELL_H, FONT_PX, PAD = 8.4, 18, 14, 12
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Ink:
    """How a span looks when everything is worked out."""

    text: str
    fg: str
    bg: str | None
    bold: bool
    italic: bool
    underline: bool
    strike: bool
    faint: bool
    link: str | None


class Palette:
    def __init__(self, theme: Theme) -> None:
        tokens = load()
        self.ground: str = tokens[theme]["terminal_ground"]
        self.text: str = tokens[theme]["terminal_text"]
        self._named: list[str] = tokens["palette"][theme]

    def color(self, color: JsonObject | None) -> str | None:
        if color is None:
            return None
        if "rgb" in color:
            rgb = color["rgb"]
            return f"#{rgb['r']:02x}{rgb['g']:02x}{rgb['b']:02x}"
        n = int(color["indexed"])
        if n < 16:
            return self._named[n]
        if n < 232:
            steps = (0, 95, 135, 175, 215, 255)
            n -= 16
            return f"#{steps[n // 36]:02x}{steps[n // 6 % 6]:02x}{steps[n % 6]:02x}"
        grey = 8 + 10 * (n - 232)
        return f"#{grey:02x}{grey:02x}{grey:02x}"

    def ink(self, span: JsonObject) -> Ink:
        fg, bg = self.color(span.get("fg")) or self.text, self.color(span.get("bg"))
        if span.get("inverse"):
            fg, bg = bg or self.ground, fg
        flags = (bool(span.get(name)) for name in ("bold", "italic", "underline", "strikethrough", "faint"))
        bold, italic, underline, strike, faint = flags
        return Ink(str(span["text"]), fg, bg, bold, italic, underline, strike, faint, span.get("link"))


def columns(text: str) -> int:
    return sum(width_of(character) for character in text)


def to_text(lines: Sequence[StyledLine]) -> str:
    return "\n".join("".join(str(span["text"]) for span in line).rstrip() for line in lines) + "\n"


def to_html(lines: Sequence[StyledLine], title: str, theme: Theme = "dark") -> str:
    palette = Palette(theme)
    rows = []
    for line in lines:
        parts = []
        for span in line:
            ink = palette.ink(span)
            parts.append(f'<span style="{_css(ink, palette)}">{html.escape(ink.text)}</span>')
        rows.append("".join(parts))
    body = "\n".join(rows)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title></head>\n'
        f'<body style="margin:0;background:{palette.ground}"><pre style="margin:{PAD}px;color:{palette.text};'
        f"font:{FONT_PX}px/{CELL_H}px 'DejaVu Sans Mono',Menlo,Consolas,monospace\">{body}\n</pre></body></html>\n"
    )


def _css(ink: Ink, palette: Palette) -> str:
    parts = [f"color:{ink.fg}"] if ink.fg != palette.text else []
    if ink.bg:
        parts.append(f"background:{ink.bg}")
    if ink.bold:
        parts.append("font-weight:bold")
    if ink.italic:
        parts.append("font-style:italic")
    if ink.faint:
        parts.append("opacity:.6")
    lines = [name for name, on in (("underline", ink.underline), ("line-through", ink.strike)) if on]
    if lines:
        parts.append(f"text-decoration:{' '.join(lines)}")
    return ";".join(parts)


def to_svg(lines: Sequence[StyledLine], cols: int, title: str, theme: Theme = "dark") -> str:
    palette = Palette(theme)
    width, height = cols * CELL_W + 2 * PAD, len(lines) * CELL_H + 2 * PAD
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img">',
        f"<title>{escape_xml(title)}</title>",
        f'<rect width="100%" height="100%" rx="6" fill="{palette.ground}"/>',
        f'<g font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="{FONT_PX}">',
    ]
    for row, line in enumerate(lines):
        out += draw_svg_row(line, PAD + row * CELL_H, palette)
    out.append("</g></svg>\n")
    return "\n".join(out)


def draw_svg_row(line: StyledLine, y: int, palette: Palette) -> list[str]:
    """The elements of one row whose top is at `y`."""
    out: list[str] = []
    col = 0
    for span in line:
        ink = palette.ink(span)
        wide = columns(ink.text)
        x = PAD + col * CELL_W
        if ink.bg:
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{wide * CELL_W:.1f}" height="{CELL_H}" fill="{ink.bg}"/>')
        if ink.text.strip():
            out.append(
                f'<text x="{x:.1f}" y="{y + 14}" textLength="{wide * CELL_W:.1f}" fill="{ink.fg}"{_svg(ink)}>'
                f"{escape_xml(ink.text)}</text>"
            )
        col += wide
    return out


def escape_xml(text: str) -> str:
    """`text` for an XML document; characters that XML cannot hold become U+FFFD."""
    return html.escape(_NOT_XML.sub("\ufffd", text))


def _svg(ink: Ink) -> str:
    # On the element itself: browsers do not take it over from a group.
    out = ' xml:space="preserve"' if "  " in ink.text or ink.text != ink.text.strip() else ""
    out += ' font-weight="bold"' if ink.bold else ""
    out += ' font-style="italic"' if ink.italic else ""
    out += ' opacity=".6"' if ink.faint else ""
    lines = [name for name, on in (("underline", ink.underline), ("line-through", ink.strike)) if on]
    return out + (f' text-decoration="{" ".join(lines)}"' if lines else "")


def to_png(lines: Sequence[StyledLine], cols: int, theme: Theme = "dark") -> bytes:
    try:
        from PIL import Image, ImageColor, ImageDraw
    except ImportError:
        raise CapabilityMissing("Pictures as PNG need the package pillow.", hint="pip install pillow") from None
    regular, bold = _font(False), _font(True)
    cell = max(1, round(regular.getlength("M")))
    palette = Palette(theme)
    image = Image.new("RGB", (cols * cell + 2 * PAD, max(1, len(lines)) * CELL_H + 2 * PAD), palette.ground)
    draw = ImageDraw.Draw(image)
    ground = ImageColor.getrgb(palette.ground)
    for row, line in enumerate(lines):
        col, y = 0, PAD + row * CELL_H
        for span in line:
            ink = palette.ink(span)
            fg: tuple[int, ...] = ImageColor.getrgb(ink.fg)
            if ink.faint:
                fg = tuple((a * 6 + b * 4) // 10 for a, b in zip(fg, ground, strict=True))
            for character in ink.text:
                wide = width_of(character)
                x = PAD + col * cell
                if ink.bg and wide:
                    draw.rectangle((x, y, x + wide * cell - 1, y + CELL_H - 1), fill=ink.bg)
                draw.text((x, y + 1), character, font=bold if ink.bold else regular, fill=fg)
                for on, at in ((ink.underline, CELL_H - 3), (ink.strike, CELL_H // 2)):
                    if on and wide:
                        draw.line((x, y + at, x + wide * cell - 1, y + at), fill=fg)
                col += wide
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


@lru_cache(maxsize=2)
def _font(bold: bool) -> Any:
    from PIL import ImageFont

    for path in _font_files(bold):
        if os.path.exists(path):
            return ImageFont.truetype(path, FONT_PX)
    raise CapabilityMissing(
        "Pictures as PNG need a monospace font on the server's machine.", hint="Install DejaVu fonts, or ask for SVG."
    )


def _font_files(bold: bool) -> list[str]:
    names = []
    if shutil.which("fc-match"):
        pattern = "monospace:bold" if bold else "monospace"
        done = subprocess.run(["fc-match", "-f", "%{file}", pattern], capture_output=True, text=True, check=False)
        names.append(done.stdout.strip())
    tail = "-Bold" if bold else ""
    return [
        *[name for name in names if name.endswith((".ttf", ".otf", ".ttc"))],
        f"/usr/share/fonts/truetype/dejavu/DejaVuSansMono{tail}.ttf",
        f"/usr/share/fonts/dejavu/DejaVuSansMono{tail}.ttf",
        f"/usr/share/fonts/TTF/DejaVuSansMono{tail}.ttf",
        "/System/Library/Fonts/Menlo.ttc",
    ]
