"""The viewers of one session: who looks, and what they are told of.

`sizes` says whose size the session takes, `frames` what they are sent, `keys` what their keys do. A viewer is told bells and clipboard
writes on purpose; queries of the program never reach one.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from wsh.session import event as ev
from wsh.session.event import Actor
from wsh.visual.input.capture import ModeChanged
from wsh.visual.viewer.frame import ViewerFrames
from wsh.visual.viewer.keys import ViewerKeys
from wsh.visual.viewer.size import SizePolicy, ViewerSizes
from wsh.visual.viewer.status import typed_fades_in
from wsh.visual.viewer.viewer import PresentViewers, Viewer, ViewerConnection
from wsh.wire.name import check_size

if TYPE_CHECKING:
    from wsh.session.session import Session
    from wsh.visual.stage import Stage, StageEvent


class Viewers:
    """All viewers of one session."""

    def __init__(
        self,
        session: Session,
        stage: Stage,
        *,
        policy: SizePolicy = "typed",
        max_fps: int = 60,
        scrolled_lines: int = 1000,
    ) -> None:
        self.session = session
        self.stage = stage
        self._viewers = PresentViewers()
        self._numbers = itertools.count(1)
        self._stop_hearing: list[Callable[[], None]] = []
        self._fading: asyncio.TimerHandle | None = None
        """Runs when the status line has told long enough who typed."""
        self.sizes = ViewerSizes(session, stage, self._viewers, policy)
        self.frames = ViewerFrames(session, stage, self._viewers, self.sizes, max_fps, scrolled_lines)
        self.keys = ViewerKeys(session, stage, self._viewers, self.sizes, self.frames, self.leave)

    def __len__(self) -> int:
        return len(self._viewers)

    def list_viewers(self) -> list[Viewer]:
        return list(self._viewers.values())

    # coming and going

    def attach(
        self,
        outlet: ViewerConnection,
        rows: int,
        cols: int,
        *,
        name: str = "",
        read_only: bool = False,
        status: bool = False,
        whole: bool = False,
        scrollback_lines: int = 0,
        prefix: str = "",
        wheel: bool = False,
        input_id: int = 0,
        typed: int = 0,
    ) -> Viewer:
        """A person begins to look: a whole picture is sent at once, frames follow."""
        rows, cols = check_size(rows, cols)
        number = next(self._numbers)
        viewer_id = f"{name or 'viewer'}-{number}"
        viewer = Viewer(
            viewer_id,
            Actor("person", viewer_id),
            outlet,
            rows,
            cols,
            read_only,
            status,
            whole,
            scrollback_lines=scrollback_lines,
            prefix=prefix,
            wheel=wheel,
        )
        if input_id and prefix and not read_only:
            self._resume_input(viewer, input_id, typed)
        self.sizes.measure(viewer, rows, cols)
        if not self._viewers:
            self._open()
        self._viewers[viewer.id] = viewer
        viewer.active = time.monotonic()
        self.sizes.fit_all()
        self.frames.send_first(viewer)
        self._tell_typist()
        # What others heard as a change is news to a viewer that comes later.
        control, taken_by = self.stage.input, self.session.input.taken_by
        if control.owner is not None:
            outlet.tell({"type": "input_mode", "mode": control.mode, "owner": control.owner})
        if taken_by is not None:
            outlet.tell({"type": "taken", "by": taken_by})
        return viewer

    def _resume_input(self, viewer: Viewer, id: int, typed: int) -> None:
        for other in self.list_viewers():
            if other.receipt.id == id:
                # What may still arrive by the connection before is sent again by this one.
                other.read_only = True
                self.dismiss(other, "the viewer came again")
        child = self.session.child
        ring = child.ring if child is not None and self.session.running else None
        viewer.receipt = self.session.input.receipts.open(ring, id, typed)
        self.keys.tell_received(viewer)
        self.sizes.resume_typist(viewer)

    def detach(self, viewer: Viewer) -> None:
        """The viewer is gone. Idempotent."""
        if not self._viewers.leave(viewer.id):
            return
        self.stage.input.end_lease(viewer.id)
        if self.session.input.taken_by == viewer.id:
            self.session.input.hand_back()
        self.frames.drop_unused()
        if self._viewers:
            self.sizes.fit_all()
            self.frames.schedule()  # the status line says how many look
        else:
            self._close()

    def resize(self, viewer: Viewer, rows: int, cols: int) -> None:
        """The viewer has another size; the session follows only where the policy says so."""
        rows, cols = check_size(rows, cols)
        viewer.active = time.monotonic()
        viewer.stale |= not viewer.whole
        self.sizes.measure(viewer, rows, cols)
        self.sizes.fit_all()
        self.frames.keep_inside(viewer)
        self.frames.drop_unused()
        self.frames.schedule(0.0)

    def leave(self, viewer: Viewer) -> None:
        """The person detaches: the last picture says nothing that is over."""
        self.stage.input.end_lease(viewer.id)
        self.frames.say(viewer, "")
        self.frames.show_page(viewer, None)
        self.frames.make()
        self.dismiss(viewer, "detached")

    def dismiss(self, viewer: Viewer, reason: str) -> None:
        """Send a viewer away; the owner of its connection then calls `detach`."""
        self.frames.tell_end(viewer)
        viewer.outlet.dismiss(reason)

    def dismiss_all(self, reason: str) -> int:
        """Send all viewers away. Returns how many there were."""
        gone = self.list_viewers()
        for viewer in gone:
            self.dismiss(viewer, reason)
        return len(gone)

    # hearing

    def _open(self) -> None:
        self._stop_hearing = [
            self.session.listeners.add(self._on_session),
            self.stage.subscribe(self._on_stage),
        ]
        self.session.output.ahead = self.frames.print_ahead

    def _close(self) -> None:
        for stop in self._stop_hearing:
            stop()
        self._stop_hearing = []
        if self._fading is not None:
            self._fading.cancel()
            self._fading = None
        self.session.output.ahead = None
        self.frames.close()

    def _tell_typist(self) -> None:
        """Let the status line say who typed, and again when that is over."""
        fades_in = typed_fades_in(self.session, self._viewers)
        if fades_in and self._fading is None:
            self._fading = asyncio.get_running_loop().call_later(fades_in, self._fade)
            self.frames.schedule()

    def _fade(self) -> None:
        self._fading = None
        self.frames.schedule()
        self._tell_typist()

    def _on_session(self, event: ev.SessionEvent) -> None:
        match event:
            case ev.Output():
                self.frames.schedule()
            case ev.Input():
                self._tell_typist()
            case ev.Bell():
                self._send_all(b"\x07")
            case ev.Clipboard(data=data):
                self._send_all(b"\x1b]52;c;%s\x1b\\" % base64.b64encode(data))
            case ev.Exited(exit_code=code):
                self.frames.make()
                for viewer in self._viewers.values():
                    self.frames.tell_end(viewer)
                self._tell_all({"type": "exit", "exit_code": code})
            case ev.Renamed(new=name):
                self._tell_all({"type": "renamed", "name": name})
                self.frames.schedule(0.0)
            case ev.TakenOver(by=by):
                self._tell_all({"type": "taken", "by": by})
                self.frames.note_taken(by)
            case ev.RunWaitChanged(actor=actor, command=command):
                self._tell_all({"type": "run_waits", "by": actor.id if actor else None, "command": command})
                self.frames.schedule(0.0)
            case ev.Destroyed():
                self.dismiss_all("the session was killed")
            case _:
                pass

    def _on_stage(self, event: StageEvent) -> None:
        if isinstance(event, ModeChanged):
            self._tell_all({"type": "input_mode", "mode": event.mode, "owner": event.owner})
        elif type(event).__name__ == "StageResized":
            for viewer in self._viewers.values():
                self.sizes.follow_session(viewer)
                self.frames.keep_inside(viewer)
                self.sizes.tell(viewer)
            self.frames.drop_unused()
        self.frames.schedule()

    def _send_all(self, data: bytes) -> None:
        for viewer in self._viewers.values():
            if not viewer.outlet.is_busy():
                viewer.outlet.send(data)

    def _tell_all(self, message: dict[str, object]) -> None:
        for viewer in self._viewers.values():
            viewer.outlet.tell(message)
