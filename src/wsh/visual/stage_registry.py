"""The stages of all sessions: made when somebody first asks for one, gone with their session."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from wsh.session.event import Destroyed, Resized, ScreenModeChanged, SessionEvent, TakenOver
from wsh.session.session import Session
from wsh.visual.element import ElementLimits
from wsh.visual.stage import Stage
from wsh.visual.viewer.size import SizePolicy
from wsh.visual.viewer.viewers import Viewers
from wsh.wire.model.base import Format
from wsh.wire.setting import Settings


class StageRegistry:
    def __init__(self, settings: Settings) -> None:
        self._limits = ElementLimits(
            settings.get_int("session.max_elements"),
            settings.get_int("session.max_spans"),
            settings.get_int("session.max_text_bytes"),
            settings.get_int("session.max_all_elements"),
        )
        self._stages: dict[str, tuple[Stage, Callable[[], None]]] = {}
        self._viewers: dict[str, Viewers] = {}
        self._policy = cast("SizePolicy", settings.get_str("session.size_policy"))
        self._max_fps = settings.get_int("viewer.max_fps")
        self._scrolled_lines = settings.get_int("viewer.scrolled_lines")

    def of(self, session: Session) -> Stage:
        """The session's stage. It follows the session's size and screen mode from now on."""
        found = self._stages.get(session.sid)
        if found is not None:
            return found[0]
        stage = Stage(session, self._limits, alternate=session.terminal.alt)

        def follow(event: SessionEvent) -> None:
            if isinstance(event, ScreenModeChanged):
                stage.follow_program(event.alternate)
            elif isinstance(event, Resized):
                stage.follow_size(event.rows, event.cols)
            elif isinstance(event, TakenOver) and event.by is not None:
                stage.input.take_back()
            elif isinstance(event, Destroyed):
                self._forget(session.sid)

        self._stages[session.sid] = (stage, session.listeners.add(follow))
        return stage

    def viewers_of(self, session: Session) -> Viewers:
        """The session's viewers, of which there may be none yet."""
        found = self._viewers.get(session.sid)
        if found is None:
            found = self._viewers[session.sid] = Viewers(
                session,
                self.of(session),
                policy=self._policy,
                max_fps=self._max_fps,
                scrolled_lines=self._scrolled_lines,
            )
        return found

    def find(self, session: Session) -> Stage | None:
        """The session's stage, if anybody has asked for it yet."""
        found = self._stages.get(session.sid)
        return found[0] if found is not None else None

    def read_screen(self, session: Session, format: Format) -> dict[str, object]:
        """What a session shows, as it goes on the wire; the mode is the stage's, where there is one."""
        shown = session.terminal.screen(format == "styled").to_wire()
        stage = self.find(session)
        if stage is not None:
            shown["mode"] = stage.mode
        return shown

    def dismiss_all(self, reason: str) -> None:
        """Send every viewer of every session away."""
        for viewers in self._viewers.values():
            viewers.dismiss_all(reason)

    def end_leases(self, owner: str) -> None:
        """`owner` is gone: what it captured is released, in every session."""
        for stage, _ in list(self._stages.values()):
            stage.input.end_lease(owner)

    def close(self) -> None:
        """Give every program the whole picture back: panels do not outlive the server."""
        for stage, stop in list(self._stages.values()):
            stage.panels.clear()
            stop()
        self._stages.clear()

    def _forget(self, sid: str) -> None:
        self._viewers.pop(sid, None)
        entry = self._stages.pop(sid, None)
        if entry is not None:
            entry[1]()
