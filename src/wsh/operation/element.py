"""Overlays and panels: the same operations for both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from wsh.operation.context import OnSession
from wsh.operation.operation import Nothing, Operation, operation
from wsh.visual.element import Elements
from wsh.visual.stage import Stage
from wsh.wire.error import InvalidOverlay, InvalidPanel, OverlayNotFound, PanelNotFound
from wsh.wire.model.base import Model
from wsh.wire.model.element import (
    BatchUpdate,
    ElementId,
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
    SpansUpdate,
)

Shown: TypeAlias = Overlay | Panel


class ElementParams(Model):
    id: ElementId


class UpdateOverlay(OverlayReplace):
    id: ElementId


class PatchOverlay(OverlayPatch):
    id: ElementId


class UpdatePanel(PanelReplace):
    id: ElementId


class PatchPanel(PanelPatch):
    id: ElementId


class UpdateSpans(SpansUpdate):
    id: ElementId


class WriteRegion(RegionWrites):
    id: ElementId


@dataclass(frozen=True)
class ElementOperations:
    """What can be done with the elements of one kind."""

    list: Operation
    create: Operation
    clear: Operation
    get: Operation
    replace: Operation
    patch: Operation
    remove: Operation
    update_spans: Operation
    write: Operation


def _pick(stage: Stage, kind: Kind) -> Elements[Overlay] | Elements[Panel]:
    return stage.overlays if kind == "overlay" else stage.panels


def _declare(
    kind: Kind,
    shown: type[Shown],
    create_params: type[OverlayCreate | PanelCreate],
    replace_params: type[UpdateOverlay | UpdatePanel],
    patch_params: type[PatchOverlay | PatchPanel],
) -> ElementOperations:
    invalid = InvalidOverlay if kind == "overlay" else InvalidPanel
    missing = OverlayNotFound if kind == "overlay" else PanelNotFound

    def of(on: OnSession) -> Elements[Overlay] | Elements[Panel]:
        return _pick(on.stage, kind)

    async def list_all(on: OnSession) -> list[Overlay] | list[Panel]:
        return of(on).list()

    async def create(on: OnSession, params: OverlayCreate | PanelCreate) -> Shown:
        return of(on).create(params, on.caller.counted_as)

    async def clear(on: OnSession) -> None:
        of(on).clear()

    async def get(on: OnSession, params: ElementParams) -> Shown:
        return of(on).get(params.id)

    async def replace(on: OnSession, params: UpdateOverlay | UpdatePanel) -> Shown:
        return of(on).replace(params.id, params)

    async def patch(on: OnSession, params: PatchOverlay | PatchPanel) -> Shown:
        return of(on).patch(params.id, params)

    async def remove(on: OnSession, params: ElementParams) -> None:
        of(on).remove(params.id)

    async def update_spans(on: OnSession, params: UpdateSpans) -> Shown:
        return of(on).update(params.id, spans=params.spans)

    async def write(on: OnSession, params: WriteRegion) -> Shown:
        return of(on).update(params.id, writes=params.writes)

    def one(
        name: str,
        run: Callable[..., Awaitable[object]],
        summary: str,
        params: type[Model],
        result: object,
        *errors: str,
    ) -> Operation:
        errors = ("session_not_found", *errors)
        return Operation(name, run, summary, params, result, True, errors=errors, invalid=invalid, missing=missing)

    gone = f"{kind}_not_found"
    changed = (gone, invalid.code)
    return ElementOperations(
        list=one(f"list_{kind}s", list_all, f"All {kind}s of a session.", Nothing, list[shown]),  # type: ignore[valid-type]  # a type made for the kind
        create=one(
            f"create_{kind}",
            create,
            f"Show a new {kind}.",
            create_params,
            shown,
            "resource_limit_reached",
            invalid.code,
        ),
        clear=one(f"clear_{kind}s", clear, f"Remove all {kind}s.", Nothing, None),
        get=one(f"get_{kind}", get, f"One {kind}.", ElementParams, shown, gone),
        replace=one(
            f"update_{kind}", replace, "New spans, and a new place where given.", replace_params, shown, *changed
        ),
        patch=one(f"patch_{kind}", patch, "Change any of its fields.", patch_params, shown, *changed),
        remove=one(f"delete_{kind}", remove, f"Remove the {kind}.", ElementParams, None, gone),
        update_spans=one(
            f"update_{kind}_spans", update_spans, "Replace the spans with these ids.", UpdateSpans, shown, *changed
        ),
        write=one(f"{kind}_region_write", write, "Put text at positions within it.", WriteRegion, shown, *changed),
    )


OVERLAY = _declare("overlay", Overlay, OverlayCreate, UpdateOverlay, PatchOverlay)
PANEL = _declare("panel", Panel, PanelCreate, UpdatePanel, PatchPanel)


@operation(errors=("session_not_found", "overlay_not_found", "panel_not_found", "invalid_overlay", "invalid_panel"))
async def batch_update(on: OnSession, params: BatchUpdate) -> Shown:
    """Spans and cells of one element, all or nothing."""
    return _pick(on.stage, params.type).update(params.id, params.spans, params.writes)
