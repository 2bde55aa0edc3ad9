"""Tools about what is shown around a program: overlays and panels, made and changed by one tool each."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from wsh.mcp.registry import to_json
from wsh.mcp.tool import schema as s
from wsh.mcp.tool.rooms import TerminalRooms
from wsh.visual.element import Overlays, Panels
from wsh.visual.stage import Stage
from wsh.wire.element import Overlay, OverlayCreate, OverlayPatch, Panel, PanelCreate, PanelPatch
from wsh.wire.error import InvalidOverlay, InvalidPanel, InvalidRequest
from wsh.wire.tool import Annotations, CallContext, Run, ToolOutcome, ToolSpec

_STEERING = {"session", "id", "list"}
_MODE = s.choice("The screen mode it belongs to; it is shown in that mode alone.", "normal", "alt")


def make_visual_tools(rooms: TerminalRooms) -> list[ToolSpec]:
    def overlays(stage: Stage) -> Overlays:
        return stage.overlays

    def panels(stage: Stage) -> Panels:
        return stage.panels

    shared: dict[str, Any] = {
        "id": {"type": "string"},
        "z": {"type": "integer"},
        "background": {"type": "object"},
        "spans": {"type": "array", "items": {"type": "object"}},
        "screen_mode": _MODE,
        "visible": {"type": "boolean", "description": "Whether it fits and its screen mode is the current one."},
        "focusable": {"type": "boolean"},
    }
    place: dict[str, Any] = {name: {"type": "integer"} for name in ("x", "y", "width", "height")}
    return [
        ToolSpec(
            name="wsh_overlay",
            title="Draw an overlay",
            description=(
                "Show text floating over a terminal, for the people who watch it; the program does not notice. Without `id` a "
                "new overlay is made, with `id` the given fields of that one change, with `list` all are returned. For a "
                "state that lasts use wsh_panel, which hides nothing. Remove it when it is no longer true."
            ),
            input_schema=s.arguments(
                ["session"],
                session=s.SESSION,
                id=s.ELEMENT_ID,
                x=s.number("Column of the left edge, from 0. A new one starts at 0.", 0, 65_535),
                y=s.number("Row of the top edge, from 0. A new one starts at 0.", 0, 65_535),
                z=s.Z,
                width=s.number("Columns. A new one is as wide as its text.", 1, 1000),
                height=s.number("Rows. A new one is as high as its text.", 1, 1000),
                background=s.COLOR,
                spans=s.SPANS,
                focusable=s.flag("Whether it can take the focus of captured keys.", default=True),
                list=s.flag("Return all overlays; everything else is ignored."),
            ),
            output_schema=_element_result("overlays", {**shared, **place}),
            family="terminal",
            run=_upsert(rooms, overlays, "overlays", _create_overlay, OverlayPatch, InvalidOverlay),
        ),
        ToolSpec(
            name="wsh_remove_overlay",
            title="Remove overlays",
            description=(
                "Remove one overlay by its id, or all of the session without one: name yours, others may have made some. What "
                "it covered comes back."
            ),
            input_schema=s.arguments(["session"], session=s.SESSION, id=s.ELEMENT_ID),
            output_schema=s.result(["success"], success=s.SUCCESS),
            family="terminal",
            run=_remove(rooms, overlays),
            annotations=Annotations(destructive=True),
        ),
        ToolSpec(
            name="wsh_panel",
            title="Draw a panel",
            description=(
                "Show text in rows of its own at the top or bottom of a terminal; the program gets fewer rows and nothing is "
                "hidden. For status, progress and questions to the person. Without `id` a new panel is made, with `id` the given "
                "fields of that one change, with `list` all are returned. A panel that does not fit is kept with visible false."
            ),
            input_schema=s.arguments(
                ["session"],
                session=s.SESSION,
                id=s.ELEMENT_ID,
                position=s.choice("The edge. A new one is at the bottom.", "top", "bottom"),
                height=s.number("Rows. A new one is as high as its text.", 1, 1000),
                z=s.Z,
                background=s.COLOR,
                spans=s.SPANS,
                focusable=s.flag("Whether it can take the focus of captured keys.", default=True),
                list=s.flag("Return all panels; everything else is ignored."),
            ),
            output_schema=_element_result(
                "panels", {**shared, "position": {"type": "string"}, "height": {"type": "integer"}}
            ),
            family="terminal",
            run=_upsert(rooms, panels, "panels", _create_panel, PanelPatch, InvalidPanel),
        ),
        ToolSpec(
            name="wsh_remove_panel",
            title="Remove panels",
            description=(
                "Remove one panel by its id, or all of the session without one: name yours, others may have made some. The "
                "program gets its rows back."
            ),
            input_schema=s.arguments(["session"], session=s.SESSION, id=s.ELEMENT_ID),
            output_schema=s.result(["success"], success=s.SUCCESS),
            family="terminal",
            run=_remove(rooms, panels),
            annotations=Annotations(destructive=True),
        ),
    ]


def _element_result(many: str, properties: dict[str, Any]) -> dict[str, Any]:
    entry = s.result(["id"], **properties)
    return {
        "type": "object",
        "properties": {many: {"type": "array", "items": entry}, **properties},
        "anyOf": [{"required": [many]}, {"required": ["id"]}],
    }


def _show(element: Overlay | Panel) -> dict[str, Any]:
    shown: dict[str, Any] = element.model_dump(mode="json")
    return shown


def _upsert(
    rooms: TerminalRooms,
    pick: Callable[[Stage], Overlays | Panels],
    many: str,
    make: Callable[[dict[str, Any]], Any],
    patch: Any,
    invalid: type[InvalidRequest],
) -> Run:
    async def run(a: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        elements = pick(rooms.stages.of(rooms.get_session(a)))
        if a.get("list"):
            found = [_show(element) for element in elements.list()]
            return ToolOutcome({many: found}, text=to_json(found))
        given = {key: value for key, value in a.items() if key not in _STEERING}
        try:
            if "id" in a:
                return ToolOutcome(_show(elements.patch(a["id"], patch.model_validate(given))))
            return ToolOutcome(_show(elements.create(make(given))))
        except ValidationError as problem:
            raise _explain(problem, invalid) from None

    return run


def _remove(rooms: TerminalRooms, pick: Callable[[Stage], Overlays | Panels]) -> Run:
    async def run(a: dict[str, Any], ctx: CallContext) -> ToolOutcome:
        elements = pick(rooms.stages.of(rooms.get_session(a)))
        if "id" in a:
            elements.remove(a["id"])
        else:
            elements.clear()
        return ToolOutcome({"success": True})

    return run


def _create_overlay(given: dict[str, Any]) -> OverlayCreate:
    width, height = measure(given.get("spans", []))
    return OverlayCreate.model_validate(
        {"x": 0, "y": 0, "width": width, "height": height, "spans": [], "focusable": True, **given}
    )


def _create_panel(given: dict[str, Any]) -> PanelCreate:
    _, height = measure(given.get("spans", []))
    return PanelCreate.model_validate({"position": "bottom", "height": height, "spans": [], "focusable": True, **given})


def measure(spans: list[dict[str, Any]]) -> tuple[int, int]:
    """Columns and rows that a text needs, at least one of each."""
    lines = "".join(span["text"] for span in spans).split("\n")
    widths = [sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) for line in lines[:1000]]
    return min(max(1, *widths, 1), 1000), min(len(lines), 1000)


def _explain(problem: ValidationError, invalid: type[InvalidRequest]) -> InvalidRequest:
    first = problem.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return invalid(f"{where}: {first['msg']}.", hint="Nothing was changed.")
