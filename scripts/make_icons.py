"""Draws the icons that a phone shows for the installed page, as web/public/icon.svg draws it. Run it after a change there."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageDraw

PUBLIC = Path(__file__).parents[1] / "web" / "public"
GROUND, ANGLE, BAR = "#14161a", "#7ab7ff", "#4cc38a"
_TIMES = 4
"""Drawn so much larger and made smaller, which smooths the edges."""


def draw(size: int, *, whole: bool) -> Image.Image:
    """`whole`: the ground fills the square, for phones that cut a shape of their own out of it; the drawing is smaller then."""
    side = size * _TIMES
    image = Image.new("RGBA", (side, side), GROUND if whole else (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    unit = side / 32 * (0.72 if whole else 1.0)
    edge = (side - unit * 32) / 2
    if not whole:
        pen.rounded_rectangle((0, 0, side - 1, side - 1), 7 * unit, fill=GROUND)

    def stroke(points: list[tuple[float, float]], colour: str) -> None:
        placed = [(edge + x * unit, edge + y * unit) for x, y in points]
        pen.line(placed, fill=colour, width=round(3 * unit), joint="curve")
        for x, y in (placed[0], placed[-1]):
            pen.ellipse((x - 1.5 * unit, y - 1.5 * unit, x + 1.5 * unit, y + 1.5 * unit), fill=colour)

    stroke([(7, 10), (13, 16), (7, 22)], ANGLE)
    stroke([(16, 23), (25, 23)], BAR)
    return image.resize((size, size), Image.Resampling.LANCZOS)


def main() -> None:
    for size in (192, 512):
        draw(size, whole=False).save(PUBLIC / f"icon-{size}.png", optimize=True)
    draw(512, whole=True).save(PUBLIC / "icon-whole-512.png", optimize=True)


if __name__ == "__main__":
    main()
