"""Tools about what is shown around a program: overlays and panels, made and changed by one tool each."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pydantic import ValidationError

from wsh.mcp.registry import to_json
from wsh.mcp.tool import schema as s
from wsh.mcp.tool.declare import Arguments, OperationTool, ToolCall
from wsh.operation.element import OVERLAY, PANEL, ElementOperations, ElementParams, PatchOverlay, PatchPanel
from wsh.wire.error import InvalidOverlay, InvalidPanel, InvalidRequest
from wsh.wire.json.object import JsonObject
from wsh.wire.model.base import Model
from wsh.wire.model.element import Overlay, OverlayCreate, Panel, PanelCreate
from wsh.wire.tool import Annotations, ToolOutcome

Spell: TypeAlias = Callable[[ToolCall], Awaitable[ToolOutcome]]
_STEERING = {"session", "id", "list"}
_HEIGHT = s.number("Rows. A new one is as high as its text.", 1, 1000)
_MODE = s.choice("The screen mode it belongs to; it is shown in that mode alone.", "normal", "alt")


_SHARED: JsonObject = {
    "id": {"type": "string"},
    "z": {"type": "integer"},
    "background": {"type": "object"},
    "spans": {"type": "array", "items": {"type": "object"}},
    "screen_mode": _MODE,
    "visible": {"type": "boolean", "description": "Whether it fits and its screen mode is the current one."},
    "focusable": {"type": "boolean"},
}
_PLACE: JsonObject = {name: {"type": "integer"} for name in ("x", "y", "width", "height")}


def _element_result(many: str, properties: JsonObject) -> dict[str, object]:
    entry = s.result(["id"], **properties)
    return {
        "type": "object",
        "properties": {many: {"type": "array", "items": entry}, **properties},
        "anyOf": [{"required": [many]}, {"required": ["id"]}],
    }


def _show(element: Overlay | Panel) -> dict[str, object]:
    shown: JsonObject = element.model_dump(mode="json")
    return shown


def _upsert(
    kind: ElementOperations,
    many: str,
    make: Callable[[Arguments], Model],
    patch: type[PatchOverlay | PatchPanel],
    invalid: type[InvalidRequest],
) -> Spell:
    async def spell(call: ToolCall) -> ToolOutcome:
        a = call.arguments
        if a.get("list"):
            found = [_show(element) for element in await call.make(kind.list)]
            return ToolOutcome({many: found}, text=to_json(found))
        given = {key: value for key, value in a.items() if key not in _STEERING}
        try:
            params = patch.model_validate({**given, "id": a["id"]}) if "id" in a else make(given)
        except ValidationError as problem:
            raise _explain(problem, invalid) from None
        return ToolOutcome(_show(await call.make(kind.patch if "id" in a else kind.create, params)))

    return spell


def _remove(kind: ElementOperations) -> Spell:
    async def spell(call: ToolCall) -> ToolOutcome:
        if "id" in call.arguments:
            await call.make(kind.remove, ElementParams(id=call.arguments["id"]))
        else:
            await call.make(kind.clear)
        return ToolOutcome({"success": True})

    return spell


def _create_overlay(given: Arguments) -> OverlayCreate:
    width, height = measure(given.get("spans", []))
    return OverlayCreate.model_validate(
        {"x": 0, "y": 0, "width": width, "height": height, "spans": [], "focusable": True, **given}
    )


def _create_panel(given: Arguments) -> PanelCreate:
    _, height = measure(given.get("spans", []))
    return PanelCreate.model_validate({"position": "bottom", "height": height, "spans": [], "focusable": True, **given})


def measure(spans: list[JsonObject]) -> tuple[int, int]:
    """Columns and rows that a text needs, at least one of each."""
    lines = "".join(span["text"] for span in spans).split("\n")
    widths = [sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) for line in lines[:1000]]
    return min(max(1, *widths, 1), 1000), min(len(lines), 1000)


def _explain(problem: ValidationError, invalid: type[InvalidRequest]) -> InvalidRequest:
    first = problem.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return invalid(f"{where}: {first['msg']}.", hint="Nothing was changed.")


def _declare(
    kind: ElementOperations,
    noun: str,
    about: str,
    about_removal: str,
    place: dict[str, s.Schema],
    shown_place: JsonObject,
    spell: Spell,
) -> tuple[OperationTool, OperationTool]:
    """The tool that draws such elements, and the one that removes them."""
    many = f"{noun}s"
    return (
        OperationTool(
            name=f"wsh_{noun}",
            title=f"Draw {'an' if noun[0] in 'aeiou' else 'a'} {noun}",
            description=about,
            input_schema=s.on_session(
                id=s.ELEMENT_ID,
                **place,
                background=s.BACKGROUND,
                spans=s.SPANS,
                focusable=s.flag("Whether it can take the focus of captured keys.", default=True),
                list=s.flag(f"Return all {many}; everything else is ignored."),
            ),
            output_schema=_element_result(many, {**_SHARED, **shown_place}),
            spell=spell,
            calls=(kind.list, kind.create, kind.patch),
            schema_version=3,
        ),
        OperationTool(
            name=f"wsh_remove_{noun}",
            title=f"Remove {many}",
            description=(
                f"Remove one {noun} by its id, or all of the session without one: name yours, others may have made some. "
                f"{about_removal}"
            ),
            input_schema=s.on_session(id=s.ELEMENT_ID),
            output_schema=s.result(["success"], success=s.SUCCESS),
            schema_version=2,
            spell=_remove(kind),
            calls=(kind.remove, kind.clear),
            annotations=Annotations(destructive=True),
        ),
    )


TOOLS = (
    *_declare(
        OVERLAY,
        "overlay",
        "Show text floating over a terminal, for the people who watch it; the program does not notice. Without `id` a "
        "new overlay is made, with `id` the given fields of that one change, with `list` all are returned. For a "
        "state that lasts use wsh_panel, which hides nothing. Remove it when it is no longer true.",
        "What it covered comes back.",
        {
            "x": s.number("Column of the left edge, from 0. A new one starts at 0.", 0, 65_535),
            "y": s.number("Row of the top edge, from 0. A new one starts at 0.", 0, 65_535),
            "z": s.Z,
            "width": s.number("Columns. A new one is as wide as its text.", 1, 1000),
            "height": _HEIGHT,
        },
        _PLACE,
        _upsert(OVERLAY, "overlays", _create_overlay, PatchOverlay, InvalidOverlay),
    ),
    *_declare(
        PANEL,
        "panel",
        "Show text in rows of its own at the top or bottom of a terminal; the program gets fewer rows and nothing is "
        "hidden. For status, progress and questions to the person. Without `id` a new panel is made, with `id` the given "
        "fields of that one change, with `list` all are returned. A panel that does not fit is kept with visible false.",
        "The program gets its rows back.",
        {
            "position": s.choice("The edge. A new one is at the bottom.", "top", "bottom"),
            "height": _HEIGHT,
            "z": s.Z,
        },
        {"position": {"type": "string"}, "height": {"type": "integer"}},
        _upsert(PANEL, "panels", _create_panel, PatchPanel, InvalidPanel),
    ),
)
