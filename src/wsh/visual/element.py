"""Overlays and panels of one session, as data: making, changing and removing them, and the limits on them.

Every change is checked whole before anything is stored. Elements are frozen values; a change replaces one. Where panels
come to lie and what that means for the program is `layout`'s business, drawing is the compositor's.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from wsh.visual.z_order import next_z
from wsh.wire.error import InvalidOverlay, InvalidPanel, InvalidRequest, LimitReached, OverlayNotFound, PanelNotFound
from wsh.wire.json.object import JsonObject
from wsh.wire.model.element import Overlay, Panel, RegionWrite, Span
from wsh.wire.model.screen import Mode

Element = TypeVar("Element", Overlay, Panel)
Action: TypeAlias = Literal["created", "updated", "removed"]


@dataclass(frozen=True)
class ElementLimits:
    elements: int = 256
    spans: int = 4096
    text_bytes: int = 64 * 1024
    of_all: int = 1024
    """Elements of a kind, of all callers; `elements` has those of one."""


@dataclass(frozen=True)
class ElementChanged:
    """Something happened to an element. On removal, `element` is its last state."""

    action: Action
    element: Overlay | Panel

    @property
    def kind(self) -> Literal["overlay", "panel"]:
        return "overlay" if isinstance(self.element, Overlay) else "panel"


class Elements(Generic[Element]):
    """The elements of one kind, in the order they were made."""

    kind: ClassVar[Literal["overlay", "panel"]]
    invalid: ClassVar[type[InvalidRequest]]

    def __init__(self, limits: ElementLimits, tell: Callable[[ElementChanged], None], mode: Callable[[], Mode]) -> None:
        self._limits = limits
        self._tell = tell
        self._mode = mode
        self._elements: dict[str, Element] = {}
        self._makers: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._elements)

    def __contains__(self, element_id: str) -> bool:
        return element_id in self._elements

    def list(self) -> list[Element]:
        return list(self._elements.values())

    def get(self, element_id: str) -> Element:
        """The element, or OverlayNotFound / PanelNotFound."""
        found = self._elements.get(element_id)
        if found is None:
            raise OverlayNotFound(element_id) if self.kind == "overlay" else PanelNotFound(element_id)
        return found

    def find(self, element_id: str) -> Element | None:
        return self._elements.get(element_id)

    def create(self, wanted: Any, maker: str = "") -> Element:
        """`maker` is the caller that it counts for."""
        if len(self._elements) >= self._limits.of_all:
            raise LimitReached(f"{self.kind}s", self._limits.of_all, "session.max_all_elements")
        self._makers = {id: by for id, by in self._makers.items() if id in self._elements}
        if list(self._makers.values()).count(maker) >= self._limits.elements:
            raise LimitReached(f"{self.kind}s", self._limits.elements, "session.max_elements")
        spans = self._check_spans(wanted.spans)
        values = {name: getattr(wanted, name) for name in type(wanted).model_fields}
        values |= {
            "id": self._make_id(),
            "z": next_z(self._elements.values()) if wanted.z is None else wanted.z,
            "spans": spans,
            "screen_mode": self._mode(),
        }
        element = self._build(values)
        self._elements[element.id] = element
        self._makers[element.id] = maker
        self._tell(ElementChanged("created", element))
        return self._elements[element.id]

    def replace(self, element_id: str, wanted: Any) -> Element:
        """New spans in place of the old ones and of all region writes; the other fields where they are given."""
        element = self.get(element_id)
        changes = {
            name: getattr(wanted, name)
            for name in wanted.model_fields_set
            if getattr(wanted, name) is not None or name == "background"
        }
        changes |= {"spans": self._check_spans(wanted.spans), "region_writes": ()}
        return self._store(element, changes)

    def patch(self, element_id: str, wanted: Any) -> Element:
        element = self.get(element_id)
        changes = {}
        for name in wanted.model_fields_set:
            value = getattr(wanted, name)
            if value is None and name != "background":
                raise self._complain(f"{name} cannot be null")
            changes[name] = self._check_spans(value) if name == "spans" else value
        return self._store(element, changes)

    def update(
        self,
        element_id: str,
        spans: Sequence[Span] | None = None,
        writes: Sequence[RegionWrite] | None = None,
    ) -> Element:
        """Replace the spans with these ids and set these cells: all of it or nothing."""
        element = self.get(element_id)
        changes: JsonObject = {}
        if spans is not None:
            changes["spans"] = self._merge_spans(element, spans)
        if writes is not None:
            changes["region_writes"] = self._merge_writes(element, writes)
        return self._store(element, changes)

    def remove(self, element_id: str) -> None:
        element = self.get(element_id)
        del self._elements[element_id]
        self._tell(ElementChanged("removed", element))

    def clear(self, mode: Mode | None = None) -> None:
        """Remove all, or all that belong to `mode`."""
        gone = [e for e in self._elements.values() if mode is None or e.screen_mode == mode]
        for element in gone:
            del self._elements[element.id]
        for element in gone:
            self._tell(ElementChanged("removed", element))

    def set_visible(self, visible: Iterable[str]) -> None:
        """Note which elements can be seen; nobody is told, since what caused it was told already."""
        seen = set(visible)
        for element_id, element in self._elements.items():
            if element.visible != (element_id in seen):
                self._elements[element_id] = element.model_copy(update={"visible": element_id in seen})

    def _build(self, values: JsonObject) -> Element:
        raise NotImplementedError

    def _store(self, element: Element, changes: JsonObject) -> Element:
        changed = element.model_copy(update=changes)
        self._check_fit(changed)
        self._elements[element.id] = changed
        self._tell(ElementChanged("updated", changed))
        return self._elements[element.id]

    def _check_fit(self, element: Element) -> None:
        for write in element.region_writes:
            if write.row >= element.height or isinstance(element, Overlay) and write.col >= element.width:
                raise self._complain(f"the cell at row {write.row}, column {write.col} lies outside the {self.kind}")

    def _check_spans(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        if len(spans) > self._limits.spans:
            raise self._complain(f"more than {self._limits.spans} spans (the setting session.max_spans)")
        self._check_texts(spans)
        ids = [span.id for span in spans if span.id is not None]
        if len(ids) != len(set(ids)):
            raise self._complain("two spans have the same id")
        return tuple(spans)

    def _check_texts(self, parts: Sequence[Span] | Sequence[RegionWrite]) -> None:
        limit = self._limits.text_bytes
        for part in parts:
            if len(part.text) > limit or len(part.text.encode("utf-8", "replace")) > limit:
                raise self._complain(f"a text is longer than {limit} bytes (the setting session.max_text_bytes)")

    def _merge_spans(self, element: Element, spans: Sequence[Span]) -> tuple[Span, ...]:
        self._check_spans(spans)
        places = {span.id: index for index, span in enumerate(element.spans) if span.id is not None}
        merged = list(element.spans)
        for span in spans:
            if span.id is None:
                raise self._complain("a span without an id cannot replace one")
            if span.id not in places:
                raise self._complain(f"there is no span with the id {span.id!r}")
            merged[places[span.id]] = span
        return tuple(merged)

    def _merge_writes(self, element: Element, writes: Sequence[RegionWrite]) -> tuple[RegionWrite, ...]:
        self._check_texts(writes)
        merged = {(write.row, write.col): write for write in element.region_writes}
        for write in writes:
            # Taken out first: a later write lies above an earlier one, also at the same place.
            merged.pop((write.row, write.col), None)
            merged[(write.row, write.col)] = write
        if len(merged) > self._limits.spans:
            raise self._complain(f"more than {self._limits.spans} region writes (the setting session.max_spans)")
        return tuple(merged.values())

    def _complain(self, what: str) -> InvalidRequest:
        return self.invalid(f"The {self.kind} is not valid: {what}.", hint="Nothing was changed.")

    def _make_id(self) -> str:
        while True:
            made = secrets.token_hex(4)
            if made not in self._elements:
                return made


class Overlays(Elements[Overlay]):
    kind = "overlay"
    invalid = InvalidOverlay

    def _build(self, values: JsonObject) -> Overlay:
        return Overlay.model_construct(region_writes=(), visible=True, **values)


class Panels(Elements[Panel]):
    kind = "panel"
    invalid = InvalidPanel

    def _build(self, values: JsonObject) -> Panel:
        return Panel.model_construct(region_writes=(), visible=False, **values)
