"""The stage of one session: its whole picture's size, screen mode, elements and input, kept true together.

The session knows only its program's screen; the stage knows the picture around it. Panels take rows from the picture,
so everybody who means the picture's size resizes the stage, and the stage resizes the session. Elements belong to the
screen mode they were made in. Drawing is the compositor's business, connections are the doors'.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol, TypeAlias

from wsh.visual.element import ElementChanged, ElementLimits, Overlays, Panels
from wsh.visual.input.capture import Change, InputControl
from wsh.visual.picture.layout import Layout, lay_out
from wsh.wire.error import AlreadyInAltScreen, ElementNotFound, NotFocusable, NotInAltScreen
from wsh.wire.model.element import Overlay, Panel
from wsh.wire.model.screen import Mode
from wsh.wire.name import check_size

log = logging.getLogger(__name__)


class StageProgram(Protocol):
    """What the stage needs of a session."""

    @property
    def name(self) -> str: ...

    rows: int
    cols: int
    borrowed_rows: int

    def resize(self, rows: int, cols: int) -> None: ...


class ScreenModeEntered:
    """The screen mode is now `mode`."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode


class StageResized:
    """The picture, or the part of it that the program has, changed its size."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout


StageEvent: TypeAlias = ElementChanged | Change | ScreenModeEntered | StageResized


class Stage:
    def __init__(self, program: StageProgram, limits: ElementLimits | None = None, *, alternate: bool = False) -> None:
        """`alternate`: whether the program is on the alternate screen now."""
        limits = limits or ElementLimits()
        self._program = program
        self._listeners: tuple[Callable[[StageEvent], None], ...] = ()
        self.rows, self.cols = program.rows, program.cols
        self._program_alternate = alternate
        self._entered_alternate = False
        self.overlays = Overlays(limits, self._on_element, lambda: self.mode)
        self.panels = Panels(limits, self._on_element, lambda: self.mode)
        self.input = InputControl(self._tell)
        self.layout = lay_out((), self.rows, self.cols, self.mode)

    # listening

    def subscribe(self, listener: Callable[[StageEvent], None]) -> Callable[[], None]:
        """Hear what happens, synchronously; the returned function ends it."""
        self._listeners = (*self._listeners, listener)

        def stop() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

        return stop

    def _tell(self, event: StageEvent) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                log.exception("a listener of the stage failed on %s", type(event).__name__)

    # size

    def resize(self, rows: int, cols: int) -> None:
        """Give the whole picture a size; the program gets what the panels leave."""
        self.rows, self.cols = check_size(rows, cols)
        self._lay_out()

    def follow_size(self, rows: int, cols: int) -> None:
        """The program's screen was resized by somebody who does not know the stage: the picture grows around it."""
        if (rows, cols) != (self.layout.pty_rows, self.layout.cols):
            self.resize(min(rows + self.rows - self.layout.pty_rows, 1000), cols)

    def _lay_out(self) -> None:
        layout = lay_out(self.panels.list(), self.rows, self.cols, self.mode)
        changed = layout != self.layout
        self.layout = layout
        self.panels.set_visible(layout.shown)
        self.overlays.set_visible(o.id for o in self.overlays.list() if o.screen_mode == self.mode)
        self._program.borrowed_rows = self.rows - layout.pty_rows
        if (self._program.rows, self._program.cols) != (layout.pty_rows, layout.cols):
            self._program.resize(layout.pty_rows, layout.cols)
        if changed:
            self._tell(StageResized(layout))

    # screen mode

    @property
    def mode(self) -> Mode:
        return "alt" if self._program_alternate or self._entered_alternate else "normal"

    @property
    def has_canvas(self) -> bool:
        """An agent's own canvas hides the program's screen."""
        return self._entered_alternate

    def enter_alternate(self) -> None:
        """An agent wants a canvas of its own."""
        if self.mode == "alt":
            raise AlreadyInAltScreen(self._program.name)
        self._entered_alternate = True
        self._change_mode()

    def leave_alternate(self) -> None:
        """Undo `enter_alternate`. The program's own alternate screen is not ours to leave."""
        if not self._entered_alternate:
            raise NotInAltScreen(self._program.name)
        before = self.mode
        self._entered_alternate = False
        if self.mode != before:
            self._change_mode()

    def follow_program(self, alternate: bool) -> None:
        """The program entered or left the alternate screen."""
        before = self.mode
        self._program_alternate = alternate
        if self.mode != before:
            self._change_mode()

    def _change_mode(self) -> None:
        if self.mode == "normal":
            self.overlays.clear("alt")
            self.panels.clear("alt")
        self._lay_out()
        focused = self.input.focused
        if focused is not None and self.get_element(focused).screen_mode != self.mode:
            self.input.focus(None)
        self._tell(ScreenModeEntered(self.mode))

    # elements

    def find_element(self, element_id: str) -> Overlay | Panel | None:
        return self.overlays.find(element_id) or self.panels.find(element_id)

    def get_element(self, element_id: str) -> Overlay | Panel:
        found = self.find_element(element_id)
        if found is None:
            raise ElementNotFound(element_id)
        return found

    def _on_element(self, event: ElementChanged) -> None:
        if self.input.focused == event.element.id and (event.action == "removed" or not event.element.focusable):
            self.input.focus(None)
        if event.kind == "panel":
            self._lay_out()
        current = self.find_element(event.element.id) or event.element
        self._tell(ElementChanged(event.action, current))

    def focus(self, element_id: str) -> None:
        """Send captured keys to this element. Raises ElementNotFound or NotFocusable."""
        element = self.get_element(element_id)
        if not element.focusable:
            raise NotFocusable(element_id)
        self.input.focus(element_id)
