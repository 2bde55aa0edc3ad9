"""Everything that is not drawing: bridge, sessions and policy, on an event loop in a thread of its own.

The window asks by `submit` and hears by one callback, which is called in this thread and must only pass the value on. A display that goes
away takes nothing with it: requests and sessions live here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from wsh.bridge.elsewhere import judge_words
from wsh.bridge.endpoint import Endpoint, remove_endpoint, write_endpoint
from wsh.bridge.listener import BridgeListener, ListenerOptions
from wsh.desktop.end import WindowEnd
from wsh.desktop.remote import PREFIX, RemoteSessions, RemoteView
from wsh.desktop.scene import Frame, HistoryRow, Notice, PolicyView, RequestRow, RuleRow, SessionRow
from wsh.policy import Mode, Policy, RuleEffect
from wsh.policy.audit import Audit
from wsh.policy.edit import NewRule, add_rule, locked, remove_rules, set_value, write_policy
from wsh.policy.rule import RuleError, parse_pattern
from wsh.policy.store import PolicyStore
from wsh.session import event as ev
from wsh.session.event import Actor, SessionEvent
from wsh.session.registry import SessionCreated, SessionDestroyed, SessionRegistry
from wsh.session.session import Session
from wsh.session.spec import SessionSpec
from wsh.terminal import Terminal, encode_key, encode_mouse, encode_paste
from wsh.terminal.mouse import MouseAction, MouseButton
from wsh.wire.error import WshError
from wsh.wire.place import Places, ensure_private
from wsh.wire.setting import Settings

log = logging.getLogger(__name__)

Result = TypeVar("Result")
PERSON = Actor("person", "window")
_FRAME_S = 1 / 60


@dataclasses.dataclass(frozen=True)
class CoreOptions:
    host: str = "127.0.0.1"
    port: int = 45_459
    token: str | None = None


class Core:
    """Start it, hear it, submit to it, stop it."""

    def __init__(
        self, places: Places, settings: Settings, options: CoreOptions, tell: Callable[[object], None]
    ) -> None:
        self._places = places
        self._own = dataclasses.replace(places, server="desktop")
        self._settings = settings
        self._options = options
        self._tell = tell
        self._thread = threading.Thread(target=self._run, name="core", daemon=True)
        self._started = threading.Event()
        self._problem: BaseException | None = None
        self.endpoint: Endpoint | None = None

    # called by the window

    def start(self) -> Endpoint:
        """Run until `stop`. Raises what kept it from starting (an OSError when the port is taken)."""
        self._thread.start()
        self._started.wait()
        if self._problem is not None:
            raise self._problem
        assert self.endpoint is not None
        return self.endpoint

    def submit(self, work: Callable[[], Awaitable[Any] | None]) -> None:
        """Do `work` in the core; what it raises is told as a notice."""
        self._loop.call_soon_threadsafe(self._begin, work)

    def stop(self) -> None:
        """End everything that runs in the window's terminals, and the thread. Idempotent."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(20)

    # the thread

    def _run(self) -> None:
        try:
            import uvloop

            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._main())
        except BaseException as problem:
            self._problem = problem
            if self._started.is_set():
                log.exception("the core ended")
        finally:
            self._started.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: str | None = None
        self._scrolled = 0
        self._size = (24, 80)
        self._frame_timer: asyncio.Handle | None = None
        self._last_frame = 0.0
        self._frame_out = False
        self._frame_owed = False
        self._state_timer: asyncio.Handle | None = None
        self._waiting: dict[str, str] = {}
        self._remote = RemoteSessions(self._places, self._tell_sessions)
        self._view: RemoteView | None = None
        self._rules: dict[str, str] | None = None
        self._rules_are_ours = False
        ensure_private(self._places.runtime)
        self.store = PolicyStore(self._places.policy_file)
        self.registry = await SessionRegistry.open(self._own, self._settings)
        self.end = WindowEnd(
            self.registry,
            self._settings,
            self.store,
            Audit(self._places.audit_log),
            on_request=self._tell,
            on_closed=self._on_closed,
            on_history=self._tell,
            on_session=lambda session: self._tell(("opened", session.sid)),
            write_rule=lambda rule, comment, by: self.add_rule(rule, "both", comment, by=by),
            size=lambda: self._size,
        )
        options = ListenerOptions(
            host=self._options.host,
            port=self._options.port,
            max_frame_bytes=self._settings.get_int("bridge.max_frame_bytes"),
            heartbeat_s=self._settings.get_float("bridge.heartbeat_s"),
            max_pending=self._settings.get_int("approvals.max_pending"),
            page_answers=self._settings.get_bool("approvals.web"),
        )
        self.listener = BridgeListener(self.end, options, self._options.token)
        try:
            endpoint = await self.listener.start()
            self.endpoint = dataclasses.replace(endpoint, pid=os.getpid())
            write_endpoint(self._places.desktop_info, self.endpoint)
            unfollow = self.registry.lifecycle.add(self._on_lifecycle)
            for session in self.registry.list_sessions():
                self._follow(session)
            self.store.subscribe(self._on_policy)
            watching = asyncio.gather(self.store.watch(), self._remote.run())
            self._started.set()
            self._tell_sessions()
            self._on_policy(self.store.current())
            await self._ending.wait()
            watching.cancel()
            unfollow()
            self._close_view()
            await asyncio.gather(watching, *self._tasks, return_exceptions=True)
        finally:
            await self.listener.aclose()
            if self.endpoint is not None:
                remove_endpoint(self._places.desktop_info, self.endpoint)
            await self.registry.stop()

    def _begin(self, work: Callable[[], Awaitable[Any] | None]) -> None:
        async def guarded() -> None:
            try:
                made = work()
                if made is not None:
                    await made
            except WshError as error:
                self._tell(Notice(f"{error.message} {error.hint or ''}".strip(), bad=True))
            except (RuleError, OSError, ValueError) as problem:
                self._tell(Notice(str(problem), bad=True))
            except Exception:
                log.exception("something the window asked for failed")
                self._tell(Notice("That did not work; the log says why.", bad=True))

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # sessions

    def _on_lifecycle(self, event: object) -> None:
        if isinstance(event, SessionCreated):
            self._follow(event.session)
        self._tell_sessions()
        if isinstance(event, SessionDestroyed) and event.sid == self._watched:
            self._watched = None

    def _follow(self, session: Session) -> None:
        def hear(event: SessionEvent) -> None:
            if isinstance(event, ev.Output):
                if session.sid == self._watched:
                    self._schedule_frame()
                self._schedule_states()
            elif isinstance(event, ev.Exited | ev.TitleChanged | ev.Renamed):
                self._tell_sessions()
                if session.sid == self._watched:
                    self._schedule_frame()
            elif isinstance(event, ev.Bell):
                self._tell(("bell", session.sid))

        session.listeners.add(hear)

    def _tell_sessions(self) -> None:
        rows = []
        for session in sorted(self.registry.list_sessions(), key=lambda session: session.cwd):
            state = self._waiting.get(session.sid, "running")
            if not session.running:
                state = "exited" if session.exit_code == 0 else "failed"
            command = session.title or session.command
            rows.append(SessionRow(session.sid, session.name, command, session.cwd, state, session.exit_code))
        for info in sorted(self._remote.sessions, key=lambda info: info.cwd):
            state = "running" if info.running else "exited" if info.exit_code == 0 else "failed"
            command, place = info.title or info.command, f"server: {info.cwd}"
            rows.append(SessionRow(PREFIX + info.name, info.name, command, place, state, info.exit_code, remote=True))
        self._tell(tuple(rows))

    def _schedule_states(self) -> None:
        """Ask the kernel what programs wait for, when output has paused."""
        if self._state_timer is not None:
            self._state_timer.cancel()
        self._state_timer = self._loop.call_later(0.3, lambda: self._begin(self._look_at_states))

    async def _look_at_states(self) -> None:
        changed = False
        for session in self.registry.list_sessions():
            if not session.running:
                continue
            try:
                seen = await session.inspect()
            except WshError:
                continue
            at_prompt = session.at_prompt == "yes"
            state = (
                "hidden" if seen.hidden_prompt else "waiting" if seen.reading == "yes" and not at_prompt else "running"
            )
            if self._waiting.get(session.sid, "running") != state:
                self._waiting[session.sid] = state
                changed = True
        if changed:
            self._tell_sessions()

    def _find(self, sid: str | None) -> Session | None:
        return next((s for s in self.registry.list_sessions() if s.sid == sid), None)

    async def open_session(self, command: str | None = None) -> None:
        session = await self.registry.open_session(
            SessionSpec(
                command=command, cwd=str(Path.home()), rows=self._size[0], cols=self._size[1], actor=PERSON, keep=True
            )
        )
        self._tell(("opened", session.sid))

    async def kill(self, sid: str) -> None:
        if sid.startswith(PREFIX):
            await self._remote.kill(sid.removeprefix(PREFIX))
            return
        session = self._find(sid)
        if session is not None:
            await self.registry.destroy(session)

    # the terminal in front

    def watch(self, sid: str | None) -> None:
        self._watched = sid
        self._scrolled = 0
        if self._view is None or self._view.sid != sid:
            self._close_view()
        if sid is not None and sid.startswith(PREFIX) and self._view is None:
            name = sid.removeprefix(PREFIX)
            self._view = RemoteView(self._places.socket, name, *self._size, self._schedule_frame)
        self._fit()

    def _close_view(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            self._begin(view.aclose)

    def _shown(self) -> Session | RemoteView | None:
        """What is in front: a session of ours, or one of the server's."""
        if self._view is not None and self._view.sid == self._watched:
            return self._view
        return self._find(self._watched)

    def resize(self, rows: int, cols: int) -> None:
        self._size = (max(1, min(rows, 1000)), max(1, min(cols, 1000)))
        self._fit()

    def _fit(self) -> None:
        shown = self._shown()
        if shown is not None and shown.running:
            shown.resize(*self._size)
        self._schedule_frame()

    def scroll(self, lines: int) -> None:
        """Move the view up (positive) or down."""
        session = self._shown()
        if session is not None:
            terminal = session.terminal
            most = 0 if terminal.alt else max(0, terminal.screen_line - terminal.first_line)
            self._scrolled = max(0, min(self._scrolled + lines, most))
            self._schedule_frame()

    def frame_taken(self) -> None:
        """The window has drawn the last frame. Until then no other is made: a slow screen gets fewer, not a queue of them."""
        self._frame_out = False
        if self._frame_owed:
            self._schedule_frame()

    def _schedule_frame(self) -> None:
        if self._frame_out:
            self._frame_owed = True
        elif self._frame_timer is None:
            wait = max(0.0, self._last_frame + _FRAME_S - time.monotonic())
            self._frame_timer = self._loop.call_later(wait, self._make_frame)

    def _make_frame(self) -> None:
        self._frame_timer = None
        self._last_frame = time.monotonic()
        session = self._shown()
        if session is None:
            return
        self._frame_out, self._frame_owed = True, False
        terminal = session.terminal
        cursor, modes = terminal.cursor, terminal.modes
        top = 0 if terminal.alt else terminal.screen_line
        if self._scrolled and not terminal.alt:
            first = top - self._scrolled
            rows: list[Any] = list(terminal.lines_between(first, first + terminal.rows, styled=True))
        else:
            rows = list(terminal.styled_rows())
        self._tell(
            Frame(
                sid=session.sid,
                rows=rows,
                cols=terminal.cols,
                cursor_row=cursor.row + self._scrolled,
                cursor_col=cursor.col,
                cursor_visible=cursor.visible and session.running,
                cursor_shape=modes.cursor_shape,
                scrolled=self._scrolled,
                history=0 if terminal.alt else top - terminal.first_line,
                mouse=modes.mouse,
                title=session.title,
            )
        )

    async def _send(self, make: Callable[[Terminal], bytes]) -> None:
        session = self._shown()
        if session is not None and session.running:
            self._scrolled = 0
            await session.send_input(make(session.terminal), PERSON)

    async def press(self, key: str) -> None:
        await self._send(lambda terminal: encode_key(key, terminal))

    async def type_text(self, text: str) -> None:
        await self._send(lambda _: text.encode())

    async def paste(self, text: str) -> None:
        await self._send(lambda terminal: encode_paste(text, terminal))

    async def mouse(self, action: MouseAction, button: MouseButton | None, row: int, col: int) -> None:
        await self._send(lambda terminal: encode_mouse(terminal, action, row, col, button))

    async def search(self, text: str) -> None:
        session = self._shown()
        if session is None or not text:
            return
        hits = session.terminal.search(text)
        if not hits:
            self._tell(Notice("Not found."))
            return
        line = hits[-1].line
        self._scrolled = max(0, session.terminal.screen_line - line)
        self._schedule_frame()

    # approvals

    def answer(
        self,
        id: str,
        yes: bool,
        *,
        scope: Any = "once",
        reason: str = "",
        argv: list[str] | None = None,
        rule: str = "",
        held: bool = False,
    ) -> None:
        """The person's answer. Edited words that destroy something count only if they were `held`."""
        pending = self.end.pending.get(id)
        if pending is None:
            self._tell(Notice("That request is no longer open."))
            return
        if yes and argv is not None and not held:
            anew = judge_words(self.end, pending, argv)
            if anew.risk != "none":
                self._tell(("hold", id, ", ".join(anew.reasons)))
                return
        if yes and scope == "always":
            parse_pattern(rule)
        counted = pending.approve(scope=scope, argv=argv) if yes else pending.decline(reason or None)
        if not counted:
            self._tell(Notice("That request ended before the answer; nothing was run."))
        elif yes and scope == "always":
            self.add_rule(rule, "both", f"always allowed in the window for {pending.request.asker.caller}")

    def _on_closed(self, id: str, outcome: str, reason: str, elsewhere: str) -> None:
        self._tell(("closed", id, outcome, reason))
        if elsewhere:
            self._tell(Notice(f"A request was {outcome} elsewhere, by {elsewhere}."))

    # policy

    def _on_policy(self, policy: Policy) -> None:
        rows = []
        for rule in policy.rules:
            modes = "both" if len(rule.modes) > 1 else next(iter(rule.modes)).value
            scope = " ".join(part for part in (rule.cwd, rule.workspace, rule.caller_surface) if part)
            shipped = rule.origin == "built-in" or "default" in rule.origin
            rows.append(RuleRow(rule.pattern, rule.effect.value, modes, scope, rule.comment, shipped))
        try:
            text = self._places.policy_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            text = ""
        self._tell(
            PolicyView(
                tuple(rows), self.store.warning or "", str(self._places.policy_file), text, ", ".join(policy.cwd_roots)
            )
        )
        self._tell_difference({f"{row.effect} {row.command} {row.modes} {row.scope}": row.command for row in rows})
        self.listener.announce_policy()

    def _tell_difference(self, rules: dict[str, str]) -> None:
        """Say what somebody else changed in the file; what was changed here the person knows."""
        before, self._rules = self._rules, rules
        if before is None or self._rules_are_ours or self.store.warning:
            return
        added = [name for key, name in rules.items() if key not in before]
        gone = [name for key, name in before.items() if key not in rules]
        parts = [f"{word} {', '.join(names[:5])}" for word, names in (("added", added), ("removed", gone)) if names]
        if parts:
            self._tell(Notice(f"The policy file was changed outside this window: {'; '.join(parts)}."))

    def _write_policy(self, change: Callable[[str], str]) -> None:
        """Change the file as it stands now, so that an edit by hand is not lost, and take it up at once."""
        self.store.check()
        with locked(self._places.policy_file) as text:
            write_policy(self._places.policy_file, change(text))
        self._rules_are_ours = True
        try:
            self.store.check()
        finally:
            self._rules_are_ours = False

    def add_rule(self, command: str, modes: str, comment: str, cwd: str = "", by: str = "window") -> None:
        """Write a rule; it holds at once, here and in every server that listens to this window."""
        chosen = frozenset(Mode) if modes == "both" else frozenset({Mode(modes)})
        rule = NewRule(command, RuleEffect.ALLOW, chosen, cwd=cwd or None, comment=comment or None)
        self._write_policy(lambda text: add_rule(text, rule))
        self.end.audit.append({"event": "policy", "change": "allow", "rule": command, "modes": modes, "by": by})

    def remove_rule(self, command: str) -> None:
        removed = 0

        def remove(text: str) -> str:
            nonlocal removed
            changed, removed = remove_rules(text, command)
            return changed

        self._write_policy(remove)
        if removed:
            self.end.audit.append({"event": "policy", "change": "revoke", "rule": command, "by": "window"})
        else:
            self._tell(Notice("That rule is shipped with the program; add a deny rule to the file to override it."))

    def set_roots(self, roots: list[str]) -> None:
        self._write_policy(lambda text: set_value(text, "cwd", "roots", roots))
        self.end.audit.append({"event": "policy", "change": "roots", "roots": roots, "by": "window"})


def as_history_line(row: HistoryRow) -> dict[str, Any]:
    return dataclasses.asdict(row)


__all__ = ["Core", "CoreOptions", "RequestRow", "as_history_line"]
