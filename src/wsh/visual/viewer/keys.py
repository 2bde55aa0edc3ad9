"""What people press at viewers of one session: keys for the program, and those that act on the viewer itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, assert_never

from wsh.session.event import Actor
from wsh.terminal import parse_keys
from wsh.visual.input.keyboard import Area, Direction, is_typed, move_mouse, take_wheel
from wsh.visual.input.typing import Typing
from wsh.visual.viewer.frame import ViewerFrames
from wsh.visual.viewer.size import ViewerSizes
from wsh.visual.viewer.viewer import PresentViewers, Viewer
from wsh.visual.viewer.window import is_window
from wsh.wire.bracketed_paste import PASTE_BEGIN
from wsh.wire.error import WshError

if TYPE_CHECKING:
    from wsh.session.session import Session
    from wsh.visual.stage import Stage


_ACKNOWLEDGE_S = 0.05
"""After so long a viewer is told what was written: once for many keys."""


class ViewerKeys:
    """`leave` is called for a person who detaches by a key."""

    def __init__(
        self,
        session: Session,
        stage: Stage,
        present: PresentViewers,
        sizes: ViewerSizes,
        frames: ViewerFrames,
        leave: Callable[[Viewer], None],
    ) -> None:
        self._session = session
        self._stage = stage
        self._present = present
        self._sizes = sizes
        self._frames = frames
        self._leave = leave
        self.typing = Typing(session, self._tell_refusal)

    def press(self, viewer: Viewer, data: bytes) -> None:
        """What a person typed at a viewer. In order, and never blocking; too much unread input is refused with a bell."""
        if viewer.read_only and is_typed(data):
            viewer.follows_cursor = True  # the one thing that typing does here
            self._frames.schedule(0.0)
            viewer.outlet.tell({"type": "read_only"})
        if viewer.prefix:
            if not viewer.read_only:
                viewer.receipt.received += len(data)
                rest = len(data) - self._pass_on(viewer, data)
                if rest:
                    self.typing.after(lambda: self._session.input.settle(viewer.receipt, rest))
            return
        for piece in viewer.keyboard.split(data, time.monotonic(), is_window(viewer.shape, self._stage)):
            if isinstance(piece, bytes):
                if not viewer.read_only:
                    self._pass_on(viewer, piece)
            elif piece == "release":
                self.release(viewer)
            elif piece == "detach":
                self._leave(viewer)
                return
            else:
                self.obey(viewer, piece)

    def obey(self, viewer: Viewer, action: Literal["take"] | Direction) -> None:
        """Take over or hand back; or move the window by half its size."""
        rows, cols = max(1, viewer.shape.picture_rows // 2), max(1, viewer.cols // 2)
        match action:
            case "take":
                if viewer.read_only or not self._session.running:
                    return
                if self._session.input.taken_by == viewer.id:
                    self._session.input.hand_back()
                else:
                    self._session.input.take_over(viewer.id)
            case "up":
                self._frames.move(viewer, viewer.top - rows, viewer.left)
            case "down":
                self._frames.move(viewer, viewer.top + rows, viewer.left)
            case "left":
                self._frames.move(viewer, viewer.top, viewer.left - cols)
            case "right":
                self._frames.move(viewer, viewer.top, viewer.left + cols)
            case _:
                assert_never(action)

    def capture(self, viewer: Viewer) -> None:
        """A person sends people's keys to events by hand."""
        if not viewer.read_only:
            self._stage.input.capture(viewer.id)

    def release(self, viewer: Viewer) -> None:
        """A person takes captured keys back."""
        if not viewer.read_only:
            self._stage.input.release(viewer.id, is_person=True)

    def note_typing(self, viewer: Viewer) -> None:
        """A person typed at this viewer, or ran something there."""
        viewer.active = time.monotonic()
        viewer.follows_cursor = True
        self._sizes.fit_typist(viewer)

    def _pass_on(self, viewer: Viewer, data: bytes) -> int:
        """Lets the program have it, and returns how many bytes go there."""
        if viewer.wheel and b"\x1b[<" in data and not self._session.terminal.modes.mouse:
            data, turns = take_wheel(data)
            if turns:
                viewer.outlet.tell({"type": "wheel", "turns": turns})
        if self._stage.input.is_diverting(self._session):
            self._divert(viewer, data)
            return 0
        viewer.diverted_paste.close()
        if is_typed(data):
            self.note_typing(viewer)
        if b"\x1b" in data:
            layout = self._stage.layout
            area = Area(layout.first_row - viewer.top, -viewer.left, layout.pty_rows, layout.cols)
            if area != Area(0, 0, viewer.rows, viewer.cols):
                data = move_mouse(data, area)
        if not data:
            return 0
        self._frames.expect_echo()
        if not self.typing.put(data, viewer.actor, viewer.receipt):
            viewer.outlet.send(b"\x07")
        return len(data)

    def _divert(self, viewer: Viewer, data: bytes) -> None:
        """Make events of captured keys. Each piece of a paste is one named `paste`: no text in it is a key."""
        paste, at = viewer.diverted_paste, 0
        if paste.is_open:
            at = paste.read(data, 0).end
            self._stage.input.divert(data[:at], "paste", viewer.id)
        for name, raw in parse_keys(data[at:]):
            if name == "paste":
                paste.open()
                paste.read(raw, len(PASTE_BEGIN))
            self._stage.input.divert(raw, None if name == "unknown" else name, viewer.id)

    def tell_received(self, viewer: Viewer) -> None:
        """The first thing that a viewer with a number is told: how much of what it sent came, here or to a server before."""
        receipt = viewer.receipt
        viewer.outlet.tell({"type": "typed", "received": receipt.received, "unsure": receipt.unsure})
        receipt.unsure = False
        later: asyncio.TimerHandle | None = None

        def acknowledge() -> None:
            nonlocal later
            later = None
            if viewer.id in self._present:
                viewer.outlet.tell({"type": "typed", "written": receipt.written})

        def wait() -> None:
            nonlocal later
            later = later or asyncio.get_running_loop().call_later(_ACKNOWLEDGE_S, acknowledge)

        receipt.on_written = wait

    def _tell_refusal(self, actor: Actor, error: WshError) -> None:
        viewer = self._present.get(actor.id)
        if viewer is not None:
            viewer.outlet.tell({"type": "error", **error.to_wire()})
