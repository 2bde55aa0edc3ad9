"""Frames for the viewers of one session: what each shows, and when.

A frame is made once per shape and given to every viewer of that shape, at most so many a second and fewer when making them takes long;
only what follows a person's key is shown at once. A viewer whose connection is still busy with the last frame is passed over and gets a
whole picture when it is free again: it costs no memory and no time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from wsh.visual.picture.compositor import Picture
from wsh.visual.picture.page import LookBack, Page
from wsh.visual.picture.painter import Painter, ViewShape
from wsh.visual.viewer.size import ViewerSizes
from wsh.visual.viewer.status import banner, one_line, status_line
from wsh.visual.viewer.viewer import PresentViewers, Viewer
from wsh.visual.viewer.window import bound, find_cursor

if TYPE_CHECKING:
    from wsh.session.session import Session
    from wsh.visual.stage import Stage

PUT_OFF_S = 0.25
"""However much making news of a screen costs, what is printed is shown after this long: a frame here, a difference in a feed."""
_MOST_LINES = 100_000
"""Earlier lines that a viewer may have."""
_LOAD = 60.0
"""Making frames takes at most one part in so many of the time."""
_FRAME_S = 0.001
"""About how long making one frame may take, when many lines scrolled off."""
_ECHO_FRAMES = 2
"""Frames that may follow a key at once: programs draw in one or two writes what it does."""
_ECHO_LOAD = 3.0
"""For those, as `_LOAD`: typing cannot make frames take more than this part of the time."""


class ViewerFrames:
    def __init__(
        self,
        session: Session,
        stage: Stage,
        present: PresentViewers,
        sizes: ViewerSizes,
        max_fps: int,
        scrolled_lines: int,
    ) -> None:
        self._session = session
        self._stage = stage
        self._present = present
        self._sizes = sizes
        self._gap_s = 1 / max_fps
        self._scrolled_lines = scrolled_lines
        self._painters: dict[ViewShape, Painter] = {}
        self._picture = Picture(session.terminal, stage)
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._due = 0.0
        self._last_frame = 0.0
        self._last_generation = 0
        self._cost_s = 0.0
        self._echo_frames = 0
        self._notice = session.notice

    def close(self) -> None:
        """Nobody looks any more. Somebody may come again."""
        self._stop_timer()
        self._painters.clear()

    # what a viewer shows

    def move(self, viewer: Viewer, top: int, left: int) -> None:
        """Show another part of a picture that is larger than the viewer."""
        viewer.follows_cursor = False
        self._place(viewer, top, left)
        self.drop_unused()
        self.schedule(0.0)

    def keep_inside(self, viewer: Viewer) -> None:
        """A window lies within the picture, also after that has shrunk."""
        self._place(viewer, viewer.top, viewer.left)

    def follow(self, viewer: Viewer) -> None:
        """Move its window to the cursor, unless its person moved it elsewhere."""
        found = find_cursor(viewer, self._session, self._stage)
        if found is not None:
            self._place(viewer, *found)

    def _place(self, viewer: Viewer, top: int, left: int) -> None:
        """Let a viewer's window begin there, as far as the picture reaches."""
        place = bound(viewer, self._stage, top, left)
        if place != (viewer.top, viewer.left):
            before = viewer.shape
            viewer.top, viewer.left = place
            self._keep_painter(viewer, before)

    def say(self, viewer: Viewer, text: str) -> None:
        """Show `text` in the viewer's last row, or with an empty one what belongs there."""
        with self._changing(viewer):
            viewer.note = one_line(text.strip(), max(1, viewer.cols - 1))

    def show_page(self, viewer: Viewer, page: Page | None) -> None:
        """Show a page to this viewer alone, or with None the session's picture again."""
        with self._changing(viewer):
            viewer.page = page

    def note_taken(self, by: str | None) -> None:
        """Let each viewer's status line say whether it has the keyboard, or another one."""
        for viewer in self._present.values():
            with self._changing(viewer):
                viewer.has_taken = viewer.id == by
        self.schedule(0.0)

    def _end_page(self, viewer: Viewer) -> None:
        """Take away a page of lines whose numbers mean other lines now, and tell the viewer."""
        if isinstance(viewer.page, LookBack) and viewer.page.epoch != self._session.terminal.epoch:
            self.show_page(viewer, None)
            viewer.outlet.tell({"type": "page_ended"})

    @contextmanager
    def _changing(self, viewer: Viewer) -> Iterator[None]:
        before = viewer.shape
        yield
        if viewer.shape != before:
            self._keep_painter(viewer, before)
            self.drop_unused()
            self.schedule(0.0)

    def tell_end(self, viewer: Viewer) -> None:
        """The last picture was sent: a terminal that stays behind may go on below what it shows."""
        painter = self._painters.get(viewer.shape)
        if painter is not None and not viewer.stale and painter.used_rows is not None:
            viewer.outlet.tell({"type": "end", "row": painter.used_rows})

    # when

    def expect_echo(self) -> None:
        """A person pressed a key: what comes of it is shown at once."""
        self._echo_frames = _ECHO_FRAMES

    def print_ahead(self, offset: int, text: bytes) -> bool:
        """The program printed plain `text` from `offset` on, which is not parsed yet: show a key's echo before all that a frame takes.

        True if at least one viewer shows it.
        """
        done = False
        if not self._echo_frames or self._timer is not None or self._last_generation != offset:
            return False
        for shape, painter in self._painters.items():
            if not painter.print_ahead(text):
                continue
            done = True
            for viewer in self._present.values():
                if viewer.stale or viewer.shape != shape:
                    continue
                if viewer.outlet.is_busy():
                    viewer.stale = True
                else:
                    viewer.outlet.send(text)
        return done

    def schedule(self, gap_s: float | None = None) -> None:
        """A frame is wanted, `gap_s` after the last one or as soon as one may be."""
        if not self._present:
            return
        if gap_s is None:
            gap_s = self._cost_s * _ECHO_LOAD if self._echo_frames else self._cost_s * _LOAD
            gap_s = min(gap_s, PUT_OFF_S)
            if not self._echo_frames:
                gap_s = max(gap_s, self._gap_s)
        now = time.monotonic()
        due = max(now, self._last_frame + gap_s)
        if self._timer is not None and self._due <= due:
            return
        self._stop_timer()
        self._due = due
        loop = asyncio.get_running_loop()
        if due <= now:
            # After this turn of the loop: what was printed together is shown together.
            self._timer = loop.call_soon(self.make)
        else:
            self._timer = loop.call_later(due - now, self.make)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def make(self) -> None:
        """Bring every viewer up to date."""
        self._stop_timer()
        started = time.thread_time()  # not the clock: a moment without the processor costs nobody anything
        generation = self._session.generation
        quiet, self._last_generation = generation == self._last_generation, generation
        self._last_frame = time.monotonic()
        if self._echo_frames:
            self._echo_frames -= 1
        by_shape: dict[ViewShape, list[Viewer]] = {}
        notice, self._notice = self._notice, self._session.notice
        for viewer in self._present.values():
            if self._notice != notice:
                viewer.outlet.tell({"type": "notice", "text": self._notice})
            self._end_page(viewer)
            self.follow(viewer)
            by_shape.setdefault(viewer.shape, []).append(viewer)
        waiting = behind = False
        if len(self._painters) > len(by_shape):
            self.drop_unused()
        for shape, viewers in by_shape.items():
            waiting |= self._paint(shape, viewers)
            painter = self._painters.get(shape)
            behind |= painter is not None and painter.behind
        self._cost_s = 0.7 * self._cost_s + 0.3 * (time.thread_time() - started)
        if behind and quiet:
            # The program rests, and what it printed is still to be shown.
            self.schedule(min(self._cost_s * _ECHO_LOAD, PUT_OFF_S))
        elif waiting or behind:
            self.schedule()

    def _paint(self, shape: ViewShape, viewers: list[Viewer]) -> bool:
        """Bring viewers of one shape up to date. True if any viewer was skipped as busy."""
        free = [v for v in viewers if not v.outlet.is_busy()]
        for viewer in viewers:
            if viewer not in free:
                viewer.stale = True
        if not free:
            return True
        painter = self._painter(shape)
        # Lines that are left for the next frame would come twice to a viewer that is given all of them now.
        renewing = any(v.renew and v.scrollback_lines for v in free)
        change = painter.change(None if renewing else time.perf_counter() + _FRAME_S)
        whole = b""
        for viewer in free:
            if viewer.stale and viewer.renew and viewer.scrollback_lines:
                self._send_earlier(viewer, painter, renew=True)
            elif viewer.stale:
                whole = whole or painter.full()
                self._tell_place(viewer, painter, gap=True)
                viewer.outlet.send(whole)
            elif change:
                self._tell_place(viewer, painter, gap=painter.left_out, since=painter.since)
                viewer.outlet.send(change)
            viewer.stale = viewer.renew = False
        return len(free) < len(viewers)

    @staticmethod
    def _tell_place(viewer: Viewer, painter: Painter, *, gap: bool, **since: int) -> None:
        """Say of the picture that comes next whether lines above it were left out, and how many are still to come."""
        if not viewer.scrollback_lines:
            return
        if viewer.awaited != painter.awaited:
            viewer.awaited = painter.awaited
            viewer.outlet.tell({"type": "behind", "lines": viewer.awaited})
        if gap:
            viewer.outlet.tell({"type": "gap", **since, **painter.place})

    def _send_earlier(self, viewer: Viewer, painter: Painter, *, renew: bool = False) -> None:
        """A whole picture with the earlier lines that the viewer wants ahead of it."""
        if viewer.scrollback_lines:
            asked = viewer.scrollback_lines
            viewer.scrollback_lines = max(asked, min(_MOST_LINES, painter.lines_from(viewer.reads)))
            viewer.reads = None
            viewer.awaited = 0
            lines, more = painter.earlier_lines(viewer.scrollback_lines)
            first = self._session.terminal.first_line
            told = {"asked": asked, "lines": lines, "more": more, "first": first, **painter.place}
            viewer.outlet.tell({"type": "scrollback", **told})
        viewer.outlet.send(painter.full(viewer.scrollback_lines, renew=renew))

    def renew(self, viewer: Viewer, scrollback_lines: int, reads: tuple[int, int] | None = None) -> None:
        """Give the viewer the picture anew, with so many earlier lines, or all from the one on that somebody `reads`."""
        viewer.scrollback_lines = scrollback_lines
        viewer.reads = reads
        viewer.stale = viewer.renew = True
        self.schedule(0.0)

    def send_first(self, viewer: Viewer) -> None:
        """The picture that somebody who has just come is given, with earlier lines ahead of it."""
        self.follow(viewer)
        painter = self._painter(viewer.shape)
        change = painter.change()
        for other in self._present.values():
            # They share the painter, which now takes it that they show this.
            if other is not viewer and other.shape == viewer.shape and not other.stale:
                if other.outlet.is_busy():
                    other.stale = True
                elif change:
                    self._tell_place(other, painter, gap=painter.left_out, since=painter.since)
                    other.outlet.send(change)
        self._sizes.tell(viewer)
        self._send_earlier(viewer, painter)
        viewer.stale = viewer.renew = False

    # one painter for every shape

    def _painter(self, shape: ViewShape) -> Painter:
        painter = self._painters.get(shape)
        if painter is None:
            painter = Painter(self._session.terminal, self._stage, self._picture, shape, self._scrolled_lines)
            self._painters[shape] = painter
        painter.name = self._session.name
        painter.status = status_line(self._session, self._stage, shape, self._present, self._sizes.policy)
        painter.banner = banner(self._session, self._stage, shape)
        return painter

    def _keep_painter(self, viewer: Viewer, before: ViewShape) -> None:
        """Let a painter that only this viewer has go on with its new shape: a difference then does for a whole picture."""
        painter = self._painters.get(before)
        shared = any(other.shape == before for other in self._present.values())
        if viewer.stale or painter is None or shared or viewer.shape in self._painters:
            viewer.stale = True
            return
        del self._painters[before]
        painter.shape = viewer.shape
        self._painters[viewer.shape] = painter

    def drop_unused(self) -> None:
        """Let painters go whose shape nobody has any more."""
        used = {viewer.shape for viewer in self._present.values()}
        self._painters = {shape: painter for shape, painter in self._painters.items() if shape in used}
