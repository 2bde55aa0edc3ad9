"""Everything that is not drawing: bridge, sessions, policy and history, on one event loop, in the process that stays.

The window is another process that asks by `VERBS` and is told values of `message`. A display that goes away takes nothing with it: requests
and sessions live here.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import getpass
import json
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from wsh.approval.answer import Answer, AnswerRefused, split_words, take_answer
from wsh.approval.card import Card
from wsh.bridge.endpoint import Endpoint, remove_endpoint, write_endpoint
from wsh.bridge.listener import BridgeListener, ListenerOptions
from wsh.desktop.active_terminal import PERSON, ActiveTerminal
from wsh.desktop.approver import WindowApprover
from wsh.desktop.message import CardRow, HistoryRow, WindowHello, WindowNotice
from wsh.desktop.preference import read_preferences, write_preference
from wsh.desktop.remote import PREFIX, RemoteSessions
from wsh.desktop.roster import Roster
from wsh.desktop.rulebook import Rulebook
from wsh.desktop.window_process import WindowProcess
from wsh.policy.audit import Audit
from wsh.policy.file.store import PolicyStore
from wsh.session.registry import SessionRegistry
from wsh.session.spec import SessionSpec
from wsh.wire.error import WshError
from wsh.wire.setting import Settings
from wsh.wire.system.crash import leave_traces
from wsh.wire.system.place import Places, ensure_private, write_private

log = logging.getLogger(__name__)
_GIVE_WAY = 5

_OUTPUT_BYTES = 256 * 1024
_RING, _RING_BYTES = "session.ring_bytes", 256 * 1024


@dataclasses.dataclass(frozen=True)
class DesktopOptions:
    host: str = "127.0.0.1"
    port: int = 45_459
    token: str | None = None
    hidden: bool = False
    theme: str | None = None


class PortTaken(Exception):
    """The bridge cannot listen where it was told to."""

    def __init__(self, problem: OSError) -> None:
        self.problem = problem


class DesktopService:
    """`run` it until the person is done with it."""

    def __init__(
        self,
        places: Places,
        settings: Settings,
        options: DesktopOptions,
        display_file: Path,
        listening: Callable[[], None],
    ) -> None:
        self._places = places
        self._own = dataclasses.replace(places, server="desktop")
        self._settings = _with_small_rings(settings)
        self._options = options
        self._display_file = display_file
        self._listening = listening
        self.endpoint: Endpoint | None = None

    async def run(self) -> None:
        """Raises PortTaken, or NoDisplay if there is nowhere to show the first window."""
        loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._ending.set)
        loop.add_signal_handler(signal.SIGUSR1, self._come_forward)
        face = [f"--renderer={self._settings.get_str('desktop.renderer')}"]
        if self._options.theme is not None:
            face.append(f"--theme={self._options.theme}")
        self.face = WindowProcess(face, self._hear, self._on_up)
        # Qt takes as long to load as everything else together, so it loads meanwhile.
        self.face.spawn()
        try:
            ensure_private(self._own.state)
            with leave_traces(self._own):
                await self._serve()
        finally:
            self.face.end()
            await self._ended(self._face_task)

    async def _serve(self) -> None:
        self._face_task: asyncio.Task[None] | None = None
        ensure_private(self._places.runtime)
        audit = Audit(self._places.audit_log)
        store = PolicyStore(self._places.policy_file)
        self.registry = await SessionRegistry.open(self._own, self._settings)
        self._remote = RemoteSessions(
            self._places, lambda: self.roster.tell(), lambda rows: self._tell(("inbox", rows))
        )
        self.roster = Roster(
            self.registry, self._remote, self._tell, self._begin, self._on_output, lambda: self.end.count_pending()
        )
        self.front = ActiveTerminal(self._places.socket, self._tell, self.roster.find, self._begin)
        self.end = WindowApprover(
            self.registry,
            self._settings,
            store,
            audit,
            on_request=self._on_request,
            on_closed=self._on_closed,
            on_history=self._tell,
            on_session=lambda session: self._tell(("started", session.sid)),
            write_rule=lambda choice, comment, by: self.rulebook.write_always(choice, comment, by),
            size=lambda: self.front.size,
        )
        options = ListenerOptions(
            host=self._options.host,
            port=self._options.port,
            max_frame_bytes=self._settings.get_int("bridge.max_frame_bytes"),
            heartbeat_s=self._settings.get_float("bridge.heartbeat_s"),
            max_pending=self._settings.get_int("approvals.max_pending"),
            page_answers=self._settings.get_bool("approvals.server"),
        )
        self.listener = BridgeListener(self.end, options, self._options.token)
        self.rulebook = Rulebook(store, audit, self._tell, self.listener.announce_policy)
        try:
            try:
                endpoint = await self.listener.start()
            except OSError as problem:
                raise PortTaken(problem) from None
            self.endpoint = dataclasses.replace(endpoint, pid=os.getpid())
            write_endpoint(self._places.desktop_info, self.endpoint)
            # Drawing goes before reading a flood. The keeper and the window run already and are not slowed down.
            os.nice(_GIVE_WAY)
            self._listening()
            store.subscribe(self.rulebook.heard)
            self.rulebook.heard(store.current())
            # What is loaded stays: looking through it again and again for garbage holds a frame up each time.
            gc.collect()
            gc.freeze()
            self._verbs = self._list_verbs()
            self._face_task = asyncio.create_task(self.face.run(), name="window")
            self._face_task.add_done_callback(lambda _: self._ending.set())
            watching = asyncio.gather(store.watch(), self._remote.run())
            await self._ending.wait()
            watching.cancel()
            self.roster.close()
            self.front.close()
            await asyncio.gather(watching, *self._tasks, return_exceptions=True)
        finally:
            await self.listener.aclose()
            if self.endpoint is not None:
                remove_endpoint(self._places.desktop_info, self.endpoint)
            await self.registry.stop()

    async def _ended(self, task: asyncio.Task[None] | None) -> None:
        if task is None:
            task = asyncio.create_task(self.face.run())
        await task

    def _begin(self, work: Callable[[], Awaitable[object] | None]) -> None:
        """Do `work`, and show what it raises as a notice."""

        try:
            made = work()
        except Exception as problem:
            self._tell_problem(problem)
            return
        if made is not None:
            task = asyncio.ensure_future(self._finish(made))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, made: Awaitable[object]) -> None:
        try:
            await made
        except Exception as problem:
            self._tell_problem(problem)

    def _tell_problem(self, problem: Exception) -> None:
        match problem:
            case WshError():
                self._tell(WindowNotice(f"{problem.message} {problem.hint or ''}".strip(), bad=True))
            case OSError() | ValueError():
                self._tell(WindowNotice(str(problem), bad=True))
            case _:
                log.error("something the window asked for failed", exc_info=problem)
                self._tell(WindowNotice("That did not work; the log says why.", bad=True))

    # the window

    def _tell(self, value: object) -> None:
        self.face.tell(value)

    def _on_up(self) -> None:
        """A window is there: tell it everything, however often it comes back."""
        assert self.endpoint is not None
        first = not self.roster.told
        visible = not (first and self._options.hidden)
        self.front.forget_window()
        self._tell(read_preferences(self._settings))
        self._tell(self.rulebook.view())
        for row in self.end.history.values():
            self._tell(row)
        for card in self.end.cards.values():
            self._tell(_row(card))
        self.roster.tell()
        self._tell(("inbox", self._remote.inbox))
        self._tell(WindowHello(f"{self.endpoint.host}:{self.endpoint.port}", visible, self.front.sid or ""))

    def _come_forward(self) -> None:
        """A second start: it says on which display it was made."""
        try:
            environ = json.loads(self._display_file.read_bytes())
        except (OSError, ValueError):
            environ = {}
        if not self.face.move(environ if isinstance(environ, dict) else {}):
            self._tell(("raise",))

    def _hear(self, verb: str, arguments: tuple[object, ...]) -> None:
        work = self._verbs.get(verb)
        if work is None:
            log.error("the window asked for %r, which there is not", verb)
        else:
            self._begin(lambda: work(*arguments))

    def _list_verbs(self) -> Mapping[str, Callable[..., Awaitable[object] | None]]:
        front, rules = self.front, self.rulebook
        return {
            "watch": front.watch,
            "resize": front.resize,
            "scroll": front.scroll,
            "scroll_to": front.scroll_to,
            "search": front.search,
            "frame_taken": front.frame_taken,
            "press": front.press,
            "type_text": front.type_text,
            "paste": front.paste,
            "mouse": front.mouse,
            "open_session": self.open_session,
            "kill": self.kill,
            "mark_inbox": self._remote.mark,
            "answer": self.answer,
            "add_rule": rules.add,
            "change_rule": rules.change,
            "remove_rule": rules.remove,
            "set_roots": rules.set_roots,
            "set_blocked": rules.set_blocked,
            "set_also": rules.set_also,
            "set_variables": rules.set_variables,
            "set_lifetime": rules.set_lifetime,
            "set_wait": rules.set_wait,
            "preview": self.preview,
            "prefer": self.prefer,
            "export": self.export,
        }

    def _on_output(self, sid: str) -> None:
        if sid == self.front.sid:
            self.front.schedule()

    def prefer(self, name: str, value: object) -> None:
        try:
            self._settings = _with_small_rings(write_preference(self._places.config_file, name, value))
        finally:
            self._tell(read_preferences(self._settings))

    # sessions

    async def open_session(self, command: str | None = None) -> None:
        rows, cols = self.front.size
        session = await self.registry.open_session(
            SessionSpec(command=command, cwd=str(Path.home()), rows=rows, cols=cols, actor=PERSON, keep=True)
        )
        self._tell(("opened", session.sid))

    async def kill(self, sid: str) -> None:
        if sid.startswith(PREFIX):
            await self._remote.kill(sid.removeprefix(PREFIX))
            return
        session = self.roster.find(sid)
        if session is not None:
            await self.registry.destroy(session)

    # approvals

    def answer(self, id: str, yes: bool, given: Mapping[str, Any]) -> None:
        """The person's answer to a card, by the names of `Answer`; `command` is what to run instead, in the words of a shell."""
        pending = self.end.pending.get(id)
        if pending is None:
            self._tell(WindowNotice("That request is no longer open."))
            return
        more = dict(given)
        command = more.pop("command", None)
        try:
            argv = split_words(command) if command is not None else None
            answer = Answer(yes=yes, by=getpass.getuser(), where="window", argv=argv, **more)
            take_answer(pending, answer, self.end)
        except AnswerRefused as refused:
            if refused.code == "not_held":
                why = "; ".join(map(str, refused.details.get("reasons", ())))  # type: ignore[call-overload]  # details are objects; this one is a list
                self._tell(("hold", id, why))
            elif refused.code in ("not_editable", "bad_rule", "forbidden"):
                self._tell(("wrong", id, refused.message))
            else:
                self._tell(WindowNotice(refused.message, bad=True))

    def _on_request(self, card: Card) -> None:
        self._tell(_row(card))
        if card.kind == "send":
            self.roster.tell()

    def _on_closed(self, id: str, outcome: str, reason: str, elsewhere: str) -> None:
        self._tell(("closed", id, outcome, reason))
        self.roster.tell()
        if elsewhere:
            self._tell(WindowNotice(f"A request was {outcome} elsewhere, by {elsewhere}."))

    # policy and history

    def preview(self, pattern: str) -> None:
        past = [row.argv for row in self.end.history.values() if row.argv]
        self._tell(("preview", pattern, self.rulebook.preview(pattern, past)))

    async def export(self, path: str) -> None:
        """Write the history as JSON lines, with what was printed where it is still kept."""
        lines = [json.dumps(self._history_line(row), ensure_ascii=False) + "\n" for row in self.end.history.values()]
        target = await asyncio.to_thread(_write_lines, path, lines)
        self._tell(WindowNotice(f"{len(lines)} lines were written to {target}."))

    def _history_line(self, row: HistoryRow) -> dict[str, object]:
        line = dataclasses.asdict(row)
        del line["sid"], line["rule"]
        session = self.roster.find(row.sid)
        if session is not None:
            line["output"] = session.output.read_recent(0)[-_OUTPUT_BYTES:].decode("utf-8", "replace")
        return line


def _row(card: Card) -> CardRow:
    return CardRow(card.id, card.model_dump())


def _write_lines(path: str, lines: list[str]) -> Path:
    target = Path(path).expanduser()
    write_private(target, "".join(lines).encode())
    return target


def _with_small_rings(settings: Settings) -> Settings:
    """What a program printed waits less before it is looked at: an echo stands behind everything that is in the ring."""
    if settings.origins[_RING] != "default":
        return settings
    return Settings({**settings.values, _RING: _RING_BYTES}, settings.origins)
