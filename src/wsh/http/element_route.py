"""Routes about what lies around a session's screen: overlays, panels, input capture, focus, screen mode."""

from __future__ import annotations

from typing import Any

from wsh.http.rooms import ApiCall, actor_of
from wsh.http.route import Handler, Route
from wsh.visual.element import Overlays, Panels
from wsh.visual.stage import Stage
from wsh.wire.element import (
    Created,
    Focus,
    FocusRequest,
    InputMode,
    Kind,
    Overlay,
    OverlayCreate,
    OverlayPatch,
    OverlayReplace,
    Panel,
    PanelCreate,
    PanelPatch,
    PanelReplace,
    RegionWrites,
    ScreenMode,
    SpansUpdate,
)
from wsh.wire.error import InvalidOverlay, InvalidPanel


def elements(stage: Stage, kind: Kind) -> Overlays | Panels:
    return stage.overlays if kind == "overlay" else stage.panels


def shown(element: Overlay | Panel) -> dict[str, Any]:
    return element.model_dump(mode="json")


def _routes(kind: Kind) -> tuple[Route, ...]:
    """The same routes for both kinds."""

    def of(call: ApiCall) -> Overlays | Panels:
        return elements(call.rooms.stage(call.session_name), kind)

    async def list_all(call: ApiCall) -> list[dict[str, Any]]:
        return [shown(element) for element in of(call).list()]

    async def create(call: ApiCall) -> Created:
        return Created(id=of(call).create(call.body).id)

    async def clear(call: ApiCall) -> None:
        of(call).clear()

    async def get(call: ApiCall) -> dict[str, Any]:
        return shown(of(call).get(call.path["id"]))

    async def replace(call: ApiCall) -> None:
        of(call).replace(call.path["id"], call.body)

    async def patch(call: ApiCall) -> None:
        of(call).patch(call.path["id"], call.body)

    async def remove(call: ApiCall) -> None:
        of(call).remove(call.path["id"])

    async def update_spans(call: ApiCall) -> None:
        of(call).update(call.path["id"], spans=call.body.spans)

    async def write(call: ApiCall) -> None:
        of(call).update(call.path["id"], writes=call.body.writes)

    is_overlay = kind == "overlay"
    model = Overlay if is_overlay else Panel
    invalid = InvalidOverlay if is_overlay else InvalidPanel
    group = f"{kind}s"
    many, one = f"/sessions/{{name}}/{kind}", f"/sessions/{{name}}/{kind}/{{id}}"
    none = ("session_not_found",)
    missing = (*none, f"{kind}_not_found")
    create_model = OverlayCreate if is_overlay else PanelCreate

    def change(method: Any, path: str, handler: Handler, summary: str, body: Any) -> Route:
        return Route(method, path, handler, summary, group, body=body, errors=(*missing, invalid.code), invalid=invalid)

    return (
        Route("GET", many, list_all, f"All {kind}s of a session.", group, answer=list[model], errors=none),  # type: ignore[valid-type]
        Route(
            "POST",
            many,
            create,
            f"Show a new {kind}.",
            group,
            body=create_model,
            answer=Created,
            status=201,
            errors=(*none, "resource_limit_reached", invalid.code),
            invalid=invalid,
        ),
        Route("DELETE", many, clear, f"Remove all {kind}s.", group, errors=none),
        Route("GET", one, get, f"One {kind}.", group, answer=model, errors=missing),
        change(
            "PUT",
            one,
            replace,
            "New spans, and a new place where given.",
            OverlayReplace if is_overlay else PanelReplace,
        ),
        change("PATCH", one, patch, "Change any of its fields.", OverlayPatch if is_overlay else PanelPatch),
        Route("DELETE", one, remove, f"Remove the {kind}.", group, errors=missing),
        change("POST", f"{one}/spans", update_spans, "Replace the spans with these ids.", SpansUpdate),
        change("POST", f"{one}/write", write, "Put text at positions within it.", RegionWrites),
    )


async def get_input_mode(call: ApiCall) -> InputMode:
    return InputMode(mode=call.rooms.stage(call.session_name).input.mode)


async def capture(call: ApiCall) -> None:
    call.rooms.stage(call.session_name).input.capture(call.caller.id)


async def release(call: ApiCall) -> None:
    is_person = actor_of(call.caller).kind == "person"
    call.rooms.stage(call.session_name).input.release(call.caller.id, is_person=is_person)


async def get_focus(call: ApiCall) -> Focus:
    return Focus(focused=call.rooms.stage(call.session_name).input.focused)


async def set_focus(call: ApiCall) -> None:
    call.rooms.stage(call.session_name).focus(call.body.id)


async def unfocus(call: ApiCall) -> None:
    call.rooms.stage(call.session_name).input.focus(None)


async def get_screen_mode(call: ApiCall) -> ScreenMode:
    return ScreenMode(mode=call.rooms.stage(call.session_name).mode)


async def enter_alternate(call: ApiCall) -> None:
    call.rooms.stage(call.session_name).enter_alternate()


async def leave_alternate(call: ApiCall) -> None:
    call.rooms.stage(call.session_name).leave_alternate()


_INPUT = "/sessions/{name}/input"
_MODE = "/sessions/{name}/screen_mode"
_ONE = ("session_not_found",)

ROUTES: tuple[Route, ...] = (
    *_routes("overlay"),
    *_routes("panel"),
    Route(
        "GET", f"{_INPUT}/mode", get_input_mode, "Whether keys are captured.", "input", answer=InputMode, errors=_ONE
    ),
    Route(
        "POST",
        f"{_INPUT}/capture",
        capture,
        "Send people's keys to events instead of the program.",
        "input",
        errors=(*_ONE, "input_captured"),
    ),
    Route("POST", f"{_INPUT}/release", release, "Let keys pass again.", "input", errors=(*_ONE, "forbidden")),
    Route("GET", f"{_INPUT}/focus", get_focus, "Which element has the focus.", "input", answer=Focus, errors=_ONE),
    Route(
        "POST",
        f"{_INPUT}/focus",
        set_focus,
        "Give an element the focus.",
        "input",
        body=FocusRequest,
        errors=(*_ONE, "not_found", "not_focusable"),
    ),
    Route("POST", f"{_INPUT}/unfocus", unfocus, "Take the focus away.", "input", errors=_ONE),
    Route(
        "GET",
        _MODE,
        get_screen_mode,
        "The normal or the alternate screen.",
        "screen mode",
        answer=ScreenMode,
        errors=_ONE,
    ),
    Route(
        "POST",
        f"{_MODE}/enter_alt",
        enter_alternate,
        "Enter the alternate screen mode.",
        "screen mode",
        errors=(*_ONE, "already_in_alt_screen"),
    ),
    Route(
        "POST",
        f"{_MODE}/exit_alt",
        leave_alternate,
        "Leave it, and remove its elements.",
        "screen mode",
        errors=(*_ONE, "not_in_alt_screen"),
    ),
)
