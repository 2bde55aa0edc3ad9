"""Viewers of one session: who looks, at which size, what they are sent and what their keys do.

Frames are made once per shape and given to every viewer of that shape, at most so many a second and fewer when making them takes long; only
what follows a person's key is shown at once. A viewer whose connection is still busy with the last frame is passed over and gets a whole picture when it is free again: it costs no
memory and no time. A viewer is told bells and clipboard writes on purpose; queries of the program never reach one.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, assert_never

from wsh.session import event as ev
from wsh.session.event import Actor
from wsh.terminal import parse_keys
from wsh.visual.input.capture import ModeChanged
from wsh.visual.input.keyboard import Area, Direction, Keyboard, is_typed, move_mouse, take_wheel
from wsh.visual.input.typing import Typing
from wsh.visual.picture.compositor import Picture
from wsh.visual.picture.following import follow_col, follow_row
from wsh.visual.picture.page import LookBack, Page
from wsh.visual.picture.painter import Painter, ViewShape
from wsh.wire.error import WshError
from wsh.wire.name import check_size

if TYPE_CHECKING:
    from wsh.session.session import Session
    from wsh.visual.stage import Stage, StageEvent

log = logging.getLogger(__name__)

SizePolicy: TypeAlias = Literal["typed", "smallest", "latest", "fixed"]
PUT_OFF_S = 0.25
"""However much making news of a screen costs, what is printed is shown after this long: a frame here, a difference in a feed."""
_LOAD = 60.0
"""Making frames takes at most one part in so many of the time."""
_FRAME_S = 0.001
"""About how long making one frame may take, when many lines scrolled off."""
_ECHO_FRAMES = 2
"""Frames that may follow a key at once: programs draw in one or two writes what it does."""
_ECHO_LOAD = 3.0
"""For those, as `_LOAD`: typing cannot make frames take more than this part of the time."""


class ViewerConnection(Protocol):
    """A viewer's connection, as far as we care."""

    def is_busy(self) -> bool:
        """Whether what was sent before is still on its way."""

    def send(self, data: bytes) -> None:
        """Send bytes for the emulator. Never blocks, never raises."""

    def tell(self, message: dict[str, object]) -> None:
        """Send something that is not a picture: size, bell, exit, mode. Never blocks, never raises."""

    def dismiss(self, reason: str) -> None:
        """End the connection."""


@dataclass
class Viewer:
    """One person looking. Made by `Viewers.attach`, ended by `Viewers.detach`."""

    id: str
    actor: Actor
    outlet: ViewerConnection
    rows: int
    cols: int
    read_only: bool
    status: bool
    whole: bool = False
    """Its picture always has the session's own size, so that it can be scaled; `fits` is what has room there."""
    fits: tuple[int, int] = (24, 80)
    """Rows and columns that the session takes if this viewer gives it its size."""
    scrollback_lines: int = 0
    """Earlier lines that come ahead of a whole picture when the session has another size: then they are laid out anew."""
    renew: bool = False
    """Whether they come with the next one."""
    top: int = 0
    left: int = 0
    follows_cursor: bool = True
    """Its window moves with the cursor: until the person moves it, and again when they type."""
    stale: bool = True
    """Its picture is not the painter's: it gets a whole one next."""
    active: float = 0.0
    prefix: str = ""
    """The key that the viewer itself acts on, as texts name it; empty where `Keyboard` acts on Ctrl+\\ here."""
    note: str = ""
    """What stands in its last row instead of the status line."""
    wheel: bool = False
    """Whether it is told when the wheel is turned up where the program does not want the mouse."""
    page: Page | None = None
    """What it shows instead of the session's picture."""

    def __post_init__(self) -> None:
        self.keyboard = Keyboard()

    @property
    def shape(self) -> ViewShape:
        return ViewShape(
            self.rows,
            self.cols,
            self.status,
            self.top,
            self.left,
            self.note,
            self.prefix,
            self.page,
            self.read_only,
            self.wheel,
        )


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
        self.policy: SizePolicy = policy
        self._gap_s = 1 / max_fps
        self._scrolled_lines = scrolled_lines
        self._viewers: dict[str, Viewer] = {}
        self._painters: dict[ViewShape, Painter] = {}
        self._picture = Picture(session.terminal, stage)
        self._numbers = itertools.count(1)
        self._typist = ""
        """Id of the viewer that typed last."""
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._due = 0.0
        self._last_frame = 0.0
        self._last_generation = 0
        self._cost_s = 0.0
        self._echo_frames = 0
        self._typing = Typing(session, self._tell_refusal)
        self._stop_hearing: list[Callable[[], None]] = []

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
        self._measure(viewer, rows, cols)
        if not self._viewers:
            self._listen()
        self._viewers[viewer.id] = viewer
        viewer.active = time.monotonic()
        self._fit()
        self._follow(viewer)
        painter = self._painter(viewer.shape)
        painter.change()
        self._tell_size(viewer)
        outlet.send(painter.full(scrollback_lines))
        viewer.stale = viewer.renew = False
        # What others heard as a change is news to whoever comes later.
        control = self.stage.input
        if control.owner is not None:
            outlet.tell({"type": "input_mode", "mode": control.mode, "owner": control.owner})
        if self.session.input.taken_by is not None:
            outlet.tell({"type": "taken", "by": self.session.input.taken_by})
        return viewer

    def detach(self, viewer: Viewer) -> None:
        """The viewer is gone. Idempotent."""
        if self._viewers.pop(viewer.id, None) is None:
            return
        self.stage.input.end_lease(viewer.id)
        if self.session.input.taken_by == viewer.id:
            self.session.input.hand_back()
        self._drop_painters()
        if self._viewers:
            self._fit()
        else:
            self._close()

    def dismiss(self, viewer: Viewer, reason: str) -> None:
        """Send a viewer away; the owner of its connection then calls `detach`."""
        self.tell_end(viewer)
        viewer.outlet.dismiss(reason)

    def dismiss_all(self, reason: str) -> int:
        """Send all viewers away. Returns how many there were."""
        gone = self.list_viewers()
        for viewer in gone:
            self.dismiss(viewer, reason)
        return len(gone)

    def resize(self, viewer: Viewer, rows: int, cols: int) -> None:
        """The viewer has another size; the session follows only where the policy says so."""
        rows, cols = check_size(rows, cols)
        viewer.active = time.monotonic()
        viewer.stale |= not viewer.whole
        self._measure(viewer, rows, cols)
        self._fit()
        self._keep_inside(viewer)
        self._drop_painters()
        self._schedule(0.0)

    def move(self, viewer: Viewer, top: int, left: int) -> None:
        """Show another part of a picture that is larger than the viewer."""
        viewer.follows_cursor = False
        self._place(viewer, top, left)
        self._drop_painters()
        self._schedule(0.0)

    def _keep_inside(self, viewer: Viewer) -> None:
        """A window lies within the picture, also after that has shrunk."""
        self._place(viewer, viewer.top, viewer.left)

    def _follow(self, viewer: Viewer) -> None:
        """Move the window of a viewer that is smaller than the picture to the cursor, unless its person moved it elsewhere."""
        if not viewer.follows_cursor or viewer.rows > self.stage.rows and viewer.cols >= self.stage.cols:
            return  # the usual case, for every viewer in every frame
        shape = viewer.shape
        if not self._is_window(shape):
            return
        cursor = self.session.terminal.cursor
        if not cursor.visible or self.stage.has_canvas:
            return
        self._place(
            viewer,
            follow_row(viewer.top, shape.picture_rows, self.stage.layout.first_row + cursor.row),
            follow_col(viewer.left, shape.cols, cursor.col),
        )

    def _place(self, viewer: Viewer, top: int, left: int) -> None:
        """Let a viewer's window begin there, as far as the picture reaches."""
        top = max(0, min(top, self.stage.rows - viewer.shape.picture_rows))
        left = max(0, min(left, self.stage.cols - viewer.cols))
        if (top, left) == (viewer.top, viewer.left):
            return
        before = viewer.shape
        viewer.top, viewer.left = top, left
        self._keep_painter(viewer, before)

    def _keep_painter(self, viewer: Viewer, before: ViewShape) -> None:
        """Let a painter that only this viewer has go on with its new shape: a difference then does for a whole picture."""
        painter = self._painters.get(before)
        shared = any(other.shape == before for other in self._viewers.values())
        if viewer.stale or painter is None or shared or viewer.shape in self._painters:
            viewer.stale = True
            return
        del self._painters[before]
        painter.shape = viewer.shape
        self._painters[viewer.shape] = painter

    def say(self, viewer: Viewer, text: str) -> None:
        """Show `text` in the viewer's last row, or with an empty one what belongs there."""
        before = viewer.shape
        viewer.note = _one_line(text.strip(), max(1, viewer.cols - 1))
        if viewer.shape != before:
            self._keep_painter(viewer, before)
            self._drop_painters()
            self._schedule(0.0)

    def show_page(self, viewer: Viewer, page: Page | None) -> None:
        """Show a page to this viewer alone, or with None the session's picture again."""
        before = viewer.shape
        viewer.page = page
        if viewer.shape != before:
            self._keep_painter(viewer, before)
            self._drop_painters()
            self._schedule(0.0)

    def _end_page(self, viewer: Viewer) -> None:
        """Take away a page of lines whose numbers mean other lines now, and tell the viewer."""
        if isinstance(viewer.page, LookBack) and viewer.page.epoch != self.session.terminal.epoch:
            self.show_page(viewer, None)
            viewer.outlet.tell({"type": "page_ended"})

    def capture(self, viewer: Viewer) -> None:
        """A person sends people's keys to events by hand."""
        if not viewer.read_only:
            self.stage.input.capture(viewer.id)

    def release(self, viewer: Viewer) -> None:
        """A person takes captured keys back."""
        if not viewer.read_only:
            self.stage.input.release(viewer.id, is_person=True)

    def leave(self, viewer: Viewer) -> None:
        """The person detaches: the last picture says nothing that is over."""
        self.stage.input.end_lease(viewer.id)
        self.say(viewer, "")
        self.show_page(viewer, None)
        self._frame()
        self.dismiss(viewer, "detached")

    def fit(self, viewer: Viewer) -> None:
        """Give the session the viewer's size, whatever the policy: the person asked for it."""
        if self.session.running and not viewer.read_only:
            self._give(*viewer.fits)

    def _measure(self, viewer: Viewer, rows: int, cols: int) -> None:
        """Note what has room at the viewer, and how large its picture is."""
        viewer.rows, viewer.cols = rows, cols
        viewer.fits = (viewer.shape.picture_rows, cols)
        if viewer.whole:
            self._follow_size(viewer)

    def _follow_size(self, viewer: Viewer) -> None:
        """A whole picture is as large as the session's."""
        rows, cols = self.stage.rows + viewer.status, self.stage.cols
        if (rows, cols) != (viewer.rows, viewer.cols):
            viewer.rows, viewer.cols, viewer.stale, viewer.renew = rows, cols, True, True

    def follows(self, viewer: Viewer) -> bool:
        """Whether the session takes this viewer's size when somebody types there."""
        if viewer.read_only or not self.session.running or self.policy == "fixed":
            return False
        return self.policy != "typed" or self.session.created_by.kind != "agent"

    def _fit(self) -> None:
        """Give the session the size that the policy says."""
        # Whoever only looks takes the picture as it is.
        typing = [v for v in self._viewers.values() if self.follows(v)]
        if not typing:
            return
        match self.policy:
            case "typed":
                typist = self._viewers.get(self._typist)
                if typist is not None and self.follows(typist):
                    self._give(*typist.fits)
            case "latest":
                self._give(*max(typing, key=lambda v: v.active).fits)
            case "smallest":
                self._give(min(v.fits[0] for v in typing), min(v.fits[1] for v in typing))
            case "fixed":
                pass
            case _:
                assert_never(self.policy)

    def _give(self, rows: int, cols: int) -> None:
        if (rows, cols) != (self.stage.rows, self.stage.cols):
            self.stage.resize(rows, cols)

    def _tell_size(self, viewer: Viewer) -> None:
        viewer.outlet.tell(
            {
                "type": "size",
                "rows": self.stage.rows,
                "cols": self.stage.cols,
                "viewer": viewer.id,
                "policy": self.policy,
                "follows": self.follows(viewer),
            }
        )

    def tell_end(self, viewer: Viewer) -> None:
        """The last picture was sent: a terminal that stays behind may go on below what it shows."""
        painter = self._painters.get(viewer.shape)
        if painter is not None and not viewer.stale and painter.used_rows is not None:
            viewer.outlet.tell({"type": "end", "row": painter.used_rows})

    # hearing

    def _listen(self) -> None:
        self._stop_hearing = [
            self.session.listeners.add(self._on_session),
            self.stage.subscribe(self._on_stage),
        ]
        self._typing.open()

    def _close(self) -> None:
        for stop in self._stop_hearing:
            stop()
        self._stop_hearing = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._typing.close()
        self._painters.clear()

    def _on_session(self, event: ev.SessionEvent) -> None:
        match event:
            case ev.Output():
                self._schedule()
            case ev.Bell():
                self._send_all(b"\x07")
            case ev.Clipboard(data=data):
                self._send_all(b"\x1b]52;c;%s\x1b\\" % base64.b64encode(data))
            case ev.Exited(exit_code=code):
                self._frame()
                for viewer in self._viewers.values():
                    self.tell_end(viewer)
                self._tell_all({"type": "exit", "exit_code": code})
            case ev.Renamed(new=name):
                self._tell_all({"type": "renamed", "name": name})
                self._schedule(0.0)
            case ev.TakenOver(by=by):
                self._tell_all({"type": "taken", "by": by})
                self._schedule(0.0)
            case ev.RunWaitChanged(actor=actor, command=command):
                self._tell_all({"type": "run_waits", "by": actor.id if actor else None, "command": command})
                self._schedule(0.0)
            case ev.Destroyed():
                self.dismiss_all("the session was killed")
            case _:
                pass

    def _on_stage(self, event: StageEvent) -> None:
        if isinstance(event, ModeChanged):
            self._tell_all({"type": "input_mode", "mode": event.mode, "owner": event.owner})
        elif type(event).__name__ == "StageResized":
            for viewer in self._viewers.values():
                if viewer.whole:
                    self._follow_size(viewer)
                self._keep_inside(viewer)
                self._tell_size(viewer)
            self._drop_painters()
        self._schedule()

    def _send_all(self, data: bytes) -> None:
        for viewer in self._viewers.values():
            if not viewer.outlet.is_busy():
                viewer.outlet.send(data)

    def _tell_all(self, message: dict[str, object]) -> None:
        for viewer in self._viewers.values():
            viewer.outlet.tell(message)

    # frames

    def _schedule(self, gap_s: float | None = None) -> None:
        """A frame is wanted, `gap_s` after the last one or as soon as one may be."""
        if not self._viewers:
            return
        if gap_s is None:
            gap_s = self._cost_s * _ECHO_LOAD if self._echo_frames else self._cost_s * _LOAD
            gap_s = min(gap_s, PUT_OFF_S)
            if not self._echo_frames:
                gap_s = max(gap_s, self._gap_s)
        now = time.monotonic()
        due = max(now, self._last_frame + gap_s)
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        loop = asyncio.get_running_loop()
        if due <= now:
            # After this turn of the loop: what was printed together is shown together.
            self._timer = loop.call_soon(self._frame)
        else:
            self._timer = loop.call_later(due - now, self._frame)

    def _frame(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        started = time.thread_time()  # not the clock: a moment without the processor costs nobody anything
        generation = self.session.generation
        quiet, self._last_generation = generation == self._last_generation, generation
        self._last_frame = time.monotonic()
        if self._echo_frames:
            self._echo_frames -= 1
        by_shape: dict[ViewShape, list[Viewer]] = {}
        for viewer in self._viewers.values():
            self._end_page(viewer)
            self._follow(viewer)
            by_shape.setdefault(viewer.shape, []).append(viewer)
        waiting = behind = False
        if len(self._painters) > len(by_shape):
            self._drop_painters()
        for shape, viewers in by_shape.items():
            waiting |= self._paint(shape, viewers)
            painter = self._painters.get(shape)
            behind |= painter is not None and painter.behind
        self._cost_s = 0.7 * self._cost_s + 0.3 * (time.thread_time() - started)
        if behind and quiet:
            self._schedule(
                min(self._cost_s * _ECHO_LOAD, PUT_OFF_S)
            )  # the program rests, and what it printed is still to be shown
        elif waiting or behind:
            self._schedule()

    def _paint(self, shape: ViewShape, viewers: list[Viewer]) -> bool:
        """Bring viewers of one shape up to date. True if any viewer was skipped as busy."""
        free = [v for v in viewers if not v.outlet.is_busy()]
        for viewer in viewers:
            if viewer not in free:
                viewer.stale = True
        if not free:
            return True
        painter = self._painter(shape)
        change = painter.change(time.perf_counter() + _FRAME_S)
        whole = b""
        for viewer in free:
            if viewer.stale:
                if viewer.renew and viewer.scrollback_lines:
                    viewer.outlet.send(painter.full(viewer.scrollback_lines, renew=True))
                else:
                    whole = whole or painter.full()
                    viewer.outlet.send(whole)
                viewer.stale = viewer.renew = False
            elif change:
                viewer.outlet.send(change)
        return len(free) < len(viewers)

    def _painter(self, shape: ViewShape) -> Painter:
        painter = self._painters.get(shape)
        if painter is None:
            painter = Painter(self.session.terminal, self.stage, self._picture, shape, self._scrolled_lines)
            self._painters[shape] = painter
        painter.status = self._status(shape)
        painter.banner = self._banner(shape)
        return painter

    def _drop_painters(self) -> None:
        used = {viewer.shape for viewer in self._viewers.values()}
        self._painters = {shape: painter for shape, painter in self._painters.items() if shape in used}

    def _status(self, shape: ViewShape) -> str:
        session = self.session
        parts = [session.name]
        if session.holding is not None:
            parts.append(f"sandbox {session.holding.profile.name}")
        if len(self._viewers) > 1:
            parts.append(f"{len(self._viewers)} viewers")
        if not session.running:
            parts.append(f"exited {session.exit_code}")
        if session.input.taken_by:
            keys = f"{shape.prefix} t" if shape.prefix else "Ctrl+\\ Ctrl+T"
            parts.append(f"taken over by {session.input.taken_by}, {keys} hands back")
        if session.input.run_waits is not None:
            parts.append(f"{session.input.run_waits[0].id} wants to run `{_one_line(session.input.run_waits[1], 32)}`")
        if self._is_window(shape):
            parts.append(f"{shape.cols}×{shape.picture_rows} of {self._size_in_words(shape)}")
        elif (shape.picture_rows, shape.cols) != (self.stage.rows, self.stage.cols):
            parts.append(self._size_in_words(shape))
        text = " " + " · ".join(parts)
        hints = ["Ctrl+\\ twice to detach"]
        if shape.prefix:
            hints = [f"{shape.prefix} ? help", f"{shape.prefix} twice to detach"]
        for hint in hints:
            if len(text) + len(hint) + 3 <= shape.cols:
                text += f" · {hint}"
        return text

    def _size_in_words(self, shape: ViewShape) -> str:
        """The session's own size, told where the viewer's differs, and what changes it."""
        size = f"{self.stage.cols}×{self.stage.rows}"
        if self.policy == "typed" and self.session.created_by.kind == "agent":
            return f"{size} (the agent's)"
        return f"{size} (until you type)" if self.policy == "typed" and not shape.read_only else size

    def _banner(self, shape: ViewShape) -> str:
        if self.session.input.run_waits is not None:
            actor, command = self.session.input.run_waits
            return f"{actor.id} wants to run `{_one_line(command, 48)}` and waits until the line is empty"
        owner = self.stage.input.owner
        if owner is None:
            return ""
        kind, _, name = owner.partition(":")
        who = name if kind == name else f"{kind} {name}".rstrip()
        return f"keys captured by {who} · {shape.prefix or 'Ctrl+' + chr(92)} to take them back"

    # keys

    def type_keys(self, viewer: Viewer, data: bytes) -> None:
        """What a person typed at a viewer. In order, and never blocking; too much unread input is refused with a bell."""
        if viewer.read_only and is_typed(data):
            viewer.follows_cursor = True  # the one thing that typing does here
            self._schedule(0.0)
        if viewer.prefix:
            if not viewer.read_only:
                self._pass_on(viewer, data)
            return
        for piece in viewer.keyboard.split(data, time.monotonic(), self._is_window(viewer.shape)):
            if isinstance(piece, bytes):
                if not viewer.read_only:
                    self._pass_on(viewer, piece)
            elif piece == "release":
                self.release(viewer)
            elif piece == "detach":
                self.leave(viewer)
                return
            else:
                self.obey(viewer, piece)

    def obey(self, viewer: Viewer, action: Literal["take"] | Direction) -> None:
        """Take over or hand back; or move the window by half its size."""
        rows, cols = max(1, viewer.shape.picture_rows // 2), max(1, viewer.cols // 2)
        match action:
            case "take":
                if viewer.read_only or not self.session.running:
                    return
                if self.session.input.taken_by == viewer.id:
                    self.session.input.hand_back()
                else:
                    self.session.input.take_over(viewer.id)
            case "up":
                self.move(viewer, viewer.top - rows, viewer.left)
            case "down":
                self.move(viewer, viewer.top + rows, viewer.left)
            case "left":
                self.move(viewer, viewer.top, viewer.left - cols)
            case "right":
                self.move(viewer, viewer.top, viewer.left + cols)
            case _:
                assert_never(action)

    def _is_window(self, shape: ViewShape) -> bool:
        """Whether such a viewer shows only a part of the picture."""
        return shape.picture_rows < self.stage.rows or shape.cols < self.stage.cols

    def _pass_on(self, viewer: Viewer, data: bytes) -> None:
        if viewer.wheel and b"\x1b[<" in data and not self.session.terminal.modes.mouse:
            data, turns = take_wheel(data)
            if turns:
                viewer.outlet.tell({"type": "wheel", "turns": turns})
        if self.stage.input.mode == "capture":
            for name, raw in parse_keys(data):
                self.stage.input.divert(raw, None if name == "unknown" else name, viewer.id)
            return
        if is_typed(data):
            self.note_typing(viewer)
        layout = self.stage.layout
        area = Area(layout.first_row - viewer.top, -viewer.left, layout.pty_rows, layout.cols)
        if area != Area(0, 0, layout.pty_rows, layout.cols) or layout.pty_rows != viewer.rows:
            data = move_mouse(data, area)
        if not data:
            return
        self._echo_frames = _ECHO_FRAMES
        if not self._typing.put(data, viewer.actor):
            viewer.outlet.send(b"\x07")

    def after_typing(self, then: Callable[[], None]) -> None:
        """Call `then` when the program has taken everything that people typed before."""
        self._typing.after(then)

    def note_typing(self, viewer: Viewer) -> None:
        """A person typed at this viewer, or ran something there."""
        viewer.active = time.monotonic()
        viewer.follows_cursor = True
        self._typist = viewer.id
        if self.policy != "smallest" and viewer.fits != (self.stage.rows, self.stage.cols):
            self._fit()

    def _tell_refusal(self, actor: Actor, error: WshError) -> None:
        viewer = self._viewers.get(actor.id)
        if viewer is not None:
            viewer.outlet.tell({"type": "error", **error.to_wire()})


def _one_line(text: str, most: int) -> str:
    """First line of `text`, without control characters, cut to `most` characters."""
    line = "".join(c for c in text.split("\n")[0].split("\r")[0] if c.isprintable())
    whole = line == text.strip() and len(line) <= most
    return line if whole else line[: most - 1].rstrip() + "…"
