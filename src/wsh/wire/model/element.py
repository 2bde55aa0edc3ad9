"""Overlays and panels on the wire: what is asked and what is answered (pydantic).

Colours are answered as `{"indexed": n}` or `{"rgb": {r, g, b}}`; asked for also by one of the 16 ANSI names or as
`#rrggbb`. Text is data: control characters do not survive being read, apart from the line feed between lines of spans.
Limits that are settings are not checked here.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_serializer

from wsh.wire.model.base import Model
from wsh.wire.model.screen import IndexedColor, Mode, RgbColor

NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_BY_NAME = {name: n for n, name in enumerate(NAMES)} | {f"bright_{name}": n + 8 for n, name in enumerate(NAMES)}
_BY_NAME |= {"gray": 8, "grey": 8}
_HEX = re.compile(r"#[0-9a-fA-F]{6}")

# C0 apart from the line feed, DEL, C1, line and paragraph separators, and the marks that reorder what stands beside them
_UNWANTED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def parse_color(value: object) -> object:
    """A name or `#rrggbb` as the colour it means; anything else is left for the models to judge."""
    if not isinstance(value, str):
        return value
    if _HEX.fullmatch(value):
        r, g, b = (int(value[i : i + 2], 16) for i in (1, 3, 5))
        return {"rgb": {"r": r, "g": g, "b": b}}
    name = value.lower().replace("-", "_").replace(" ", "_")
    if name not in _BY_NAME:
        raise ValueError('not a colour: use one of the 16 ANSI names, \'#rrggbb\', {"indexed": n} or {"rgb": {...}}')
    return {"indexed": _BY_NAME[name]}


def clean_text(text: str) -> str:
    """`text` without what could do anything but be shown. A tab is a blank."""
    return _UNWANTED.sub("", text.replace("\t", " ")) if not text.isprintable() else text


def clean_cell_text(text: str) -> str:
    return clean_text(text).replace("\n", "")


_COLOR_SCHEMA = {
    "anyOf": [
        {"type": "string", "enum": sorted(_BY_NAME)},
        {"type": "string", "pattern": "^#[0-9a-fA-F]{6}$"},
        {
            "type": "object",
            "properties": {"indexed": {"type": "integer", "minimum": 0, "maximum": 255}},
            "required": ["indexed"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "rgb": {
                    "type": "object",
                    "properties": {c: {"type": "integer", "minimum": 0, "maximum": 255} for c in "rgb"},
                    "required": ["r", "g", "b"],
                    "additionalProperties": False,
                }
            },
            "required": ["rgb"],
            "additionalProperties": False,
        },
    ]
}


def unwrap_background(value: object) -> object:
    """`{"bg": colour}`, as the public API has it, is that colour."""
    return value["bg"] if isinstance(value, dict) and set(value) == {"bg"} else value


_BACKGROUND_SCHEMA = {
    "anyOf": [
        *_COLOR_SCHEMA["anyOf"],
        {
            "type": "object",
            "properties": {"bg": _COLOR_SCHEMA},
            "required": ["bg"],
            "additionalProperties": False,
        },
    ]
}

Color: TypeAlias = Annotated[IndexedColor | RgbColor, BeforeValidator(parse_color), WithJsonSchema(_COLOR_SCHEMA)]
Background: TypeAlias = Annotated[
    IndexedColor | RgbColor,
    BeforeValidator(lambda value: parse_color(unwrap_background(value))),
    WithJsonSchema(_BACKGROUND_SCHEMA, mode="validation"),
    WithJsonSchema(_COLOR_SCHEMA, mode="serialization"),
]
Coordinate: TypeAlias = Annotated[int, Field(ge=0, le=65_535)]
Extent: TypeAlias = Annotated[int, Field(ge=1, le=1000)]
Z: TypeAlias = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
ElementId: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
Position: TypeAlias = Literal["top", "bottom"]
Kind: TypeAlias = Literal["overlay", "panel"]


class _Sparse(Model):
    """Shows a field only when it is set."""

    @model_serializer(mode="wrap")
    def _present(self, handler: Any) -> dict[str, object]:
        return {key: value for key, value in handler(self).items() if value is not None and value is not False}


class Style(_Sparse):
    fg: Color | None = None
    bg: Color | None = None
    bold: bool = False
    faint: bool = False
    italic: bool = False
    underline: bool = False
    strikethrough: bool = False
    inverse: bool = False


class Span(Style):
    text: Annotated[str, AfterValidator(clean_text)]
    id: ElementId | None = None


class RegionWrite(Style):
    """A text put at one place of an element."""

    row: Coordinate
    col: Coordinate
    text: Annotated[str, AfterValidator(clean_cell_text)]


class _Element(Model):
    id: str
    z: int
    background: Background | None = None
    spans: tuple[Span, ...] = ()
    region_writes: tuple[RegionWrite, ...] = ()
    focusable: bool = False
    screen_mode: Mode
    visible: bool = True

    @model_serializer(mode="wrap")
    def _present(self, handler: Any) -> dict[str, object]:
        shown: dict[str, object] = handler(self)
        if shown["background"] is None:
            del shown["background"]
        if not shown["region_writes"]:
            del shown["region_writes"]
        return shown


class Overlay(_Element):
    """A rectangle of text above the screen, at column `x` and row `y`."""

    x: int
    y: int
    width: int
    height: int


class Panel(_Element):
    """Rows at the top or bottom that the program cannot use."""

    position: Position
    height: int


class OverlayCreate(Model):
    x: Coordinate
    y: Coordinate
    width: Extent
    height: Extent
    z: Z | None = None
    background: Background | None = None
    spans: list[Span]
    focusable: bool = False


class OverlayReplace(Model):
    """New spans, and a new place where given."""

    spans: list[Span]
    x: Coordinate | None = None
    y: Coordinate | None = None
    width: Extent | None = None
    height: Extent | None = None
    z: Z | None = None
    background: Background | None = None
    focusable: bool | None = None


class OverlayPatch(Model):
    """Any of these; what is left out stays. `background: null` takes the background away."""

    x: Coordinate | None = None
    y: Coordinate | None = None
    width: Extent | None = None
    height: Extent | None = None
    z: Z | None = None
    background: Background | None = None
    spans: list[Span] | None = None
    focusable: bool | None = None


class PanelCreate(Model):
    position: Position
    height: Extent
    z: Z | None = None
    background: Background | None = None
    spans: list[Span]
    focusable: bool = False


class PanelReplace(Model):
    spans: list[Span]
    position: Position | None = None
    height: Extent | None = None
    z: Z | None = None
    background: Background | None = None
    focusable: bool | None = None


class PanelPatch(Model):
    position: Position | None = None
    height: Extent | None = None
    z: Z | None = None
    background: Background | None = None
    spans: list[Span] | None = None
    focusable: bool | None = None


class SpansUpdate(Model):
    """Replaces the spans that have these ids."""

    spans: list[Span]


class RegionWrites(Model):
    writes: list[RegionWrite]


class BatchUpdate(Model):
    """Spans and cells of one element, changed together or not at all."""

    id: ElementId
    type: Kind
    spans: list[Span] | None = None
    writes: list[RegionWrite] | None = None


class Created(Model):
    id: str


class InputMode(Model):
    mode: Literal["passthrough", "capture"]


class Focus(Model):
    focused: str | None


class FocusRequest(Model):
    id: ElementId


class ScreenMode(Model):
    mode: Mode
