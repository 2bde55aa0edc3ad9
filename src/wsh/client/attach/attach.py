"""A session shown in this terminal: its pictures come in, keys go out, until detached.

Talks to `/sessions/{name}/ws/view`: binary messages are bytes for the emulator one way and typed bytes the other; text messages are JSON
about sizes, modes and the end. If the server dies, another is started (or found) and the session goes on where it was. One loop over
`poll`, without an event loop's machinery: what it does between a key and its echo is felt. What the keys behind the prefix do is in
`client/attach/`, and the server draws the hint for them.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote, urlencode

from wsh.client import tty
from wsh.client.attach.lending import Lending
from wsh.client.attach.person import Elsewhere, Person
from wsh.client.attach.prefix import Bindings
from wsh.client.ws_client import HANDSHAKE_S, WsClient, WsLost, WsMessage, open_ws_client
from wsh.wire.error import InvalidRequest, ServerGone, WshError
from wsh.wire.system.place import find_places

if TYPE_CHECKING:
    from wsh.client.attach.look_back import CopyKeys
    from wsh.client.launch import ServerRecord

_RECONNECT_S = 10.0
_UNSENT_BYTES = 256 * 1024
"""Keys are left in the terminal while the server has so much to read."""
_LOOK_S = 0.05
"""Between two looks for the server."""
_AT_ONCE_S = 0.25
"""A server that is well lets a viewer in within so long: nobody wants to leave before."""
_SILENT_S = 2.5
"""After so long without an answer its health is asked for."""
_LEAVING_S = 1.0
"""How long a server may take to say goodbye to a person who detaches."""
_REMEMBERED = 16
"""Sessions, for `wsh attach` without a name."""


@dataclass(frozen=True)
class ViewOptions:
    read_only: bool = False
    status: bool = True
    scrollback_lines: int = 0
    bindings: Bindings = field(default_factory=Bindings)
    copy_keys: CopyKeys = "vi"
    wheel: bool = False
    shows_ended: bool = True
    """Whether a session that has ended before is shown, to be read; else its end is told at once."""


@dataclass
class ViewEnd:
    """How the viewing ended: `reason` in words, and the program's exit status if it ended."""

    reason: str
    exit_code: int | None = None
    session: str = ""
    """The session that was shown last; its name may have changed, or the person went to another."""
    row: int | None = None
    """Up to which row of the terminal the last picture reaches, where that is known."""


class _Ended(Exception):
    def __init__(self, end: ViewEnd) -> None:
        self.end = end


class _Suspended(Exception):
    """The viewer was told to stop (`by` SIGTSTP), or has been stopped (SIGCONT)."""

    def __init__(self, by: int) -> None:
        self.by = by


def view(name: str, options: ViewOptions, held: tty.Held, check_health: Callable[[], None] = lambda: None) -> ViewEnd:
    """Show session `name` here until it is detached, killed or over. The terminal is `held` in raw mode.

    Raises what the server refuses with; nothing was drawn then. `check_health` is called where it has not answered at first, and may raise.
    """
    person = Person(name, options.bindings, read_only=options.read_only, copy_keys=options.copy_keys)
    screen = _Screen(person, held, options.shows_ended)
    try:
        with _signals() as resized:
            wait = partial(_wait_for_answer, person, screen, resized, check_health)
            last: ServerRecord | None = None
            is_gone = False
            while True:
                try:
                    if is_gone:
                        _find_server(last, person, screen, resized)
                        is_gone = False
                    target = _target(person.session, options, person.has_prefix)
                    line = open_ws_client(find_places().socket, target, wait)
                    last = _read_record()
                    _note_last(person.session)
                    _view_once(line, screen, person, resized)
                except InvalidRequest as problem:
                    if person.go_back(problem.message):
                        continue
                    if not person.has_prefix or "prefix" not in problem.message:
                        raise
                    person.has_prefix = False  # a server of an earlier version, which acts on the keys itself
                except _Suspended as suspended:
                    if suspended.by == signal.SIGTSTP:
                        held.suspend()
                    held.take_again()
                    with contextlib.suppress(BlockingIOError):
                        os.read(resized, 4096)  # we know that we go on, and the size is asked for anew
                    options = replace(options, scrollback_lines=0)
                    screen.shows_ended = True
                except Elsewhere:
                    options = replace(options, scrollback_lines=0)
                    screen.shows_ended = True
                except (WsLost, ServerGone):
                    if is_gone:
                        raise  # none could be started
                    is_gone = True
                    if held.has_screen:
                        screen.shows_ended = person.has_ended  # what ends meanwhile ends under the person's eyes
                    screen.tell(f"the server is gone, waiting for it · {options.bindings.shown} twice leaves")
                    options = replace(options, scrollback_lines=0)  # that is on this terminal already
                except WshError as problem:
                    if not person.go_back(problem.message):
                        raise
    except _Ended as ended:
        ended.end.session = person.session
        return ended.end


def _note_last(session: str) -> None:
    """Remember the session, and those before it, for `wsh attach` without a name. A failure to write it is ignored."""
    path = find_places().last_attached
    with contextlib.suppress(OSError, ValueError):
        before = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        names = [session, *(name for name in before if name != session)]
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write("\n".join(names[:_REMEMBERED]))


def _read_record() -> ServerRecord | None:
    from wsh.client.launch import read_record

    return read_record(find_places())


def _find_server(last: ServerRecord | None, person: Person, screen: _Screen, resized: int) -> None:
    """Wait for the server, or start one; `last` is the one that we were connected to. The person may leave meanwhile."""
    import asyncio
    from concurrent.futures import Future
    from threading import Thread

    from wsh.client.launch import ensure_server

    done: Future[None] = Future()

    def find() -> None:
        time.sleep(0.05)
        try:
            asyncio.run(ensure_server(timeout_s=_RECONNECT_S, last=last))
            done.set_result(None)
        except BaseException as problem:
            done.set_exception(problem)

    # Nobody waits for it when the person leaves.
    Thread(target=find, daemon=True).start()
    while not done.done():
        _type_meanwhile(person, screen, resized, [], _LOOK_S)
    done.result()


def _wait_for_answer(
    person: Person, screen: _Screen, resized: int, check_health: Callable[[], None], connection: socket.socket
) -> None:
    """Until the server answers. The person may leave meanwhile. Raises TimeoutError."""
    if select.select([connection], [], [], _AT_ONCE_S)[0]:
        return
    screen.tell(f"waiting for the server · {person.bindings.shown} twice leaves")
    now = time.monotonic()
    until, check_at = now + HANDSHAKE_S, None if screen.held.has_screen else now + _SILENT_S
    while now < until:
        limit_s = until - now if check_at is None else max(0.0, check_at - now)
        if _type_meanwhile(person, screen, resized, [connection], limit_s):
            return
        now = time.monotonic()
        if check_at is not None and now >= check_at:
            check_at = None
            check_health()
    raise TimeoutError("it does not answer")


def _type_meanwhile(
    person: Person, screen: _Screen, resized: int, connections: list[socket.socket], limit_s: float
) -> bool:
    """Wait for a connection, or for what the person does while the server reads nothing. True if a connection can be read."""
    watched: list[int | socket.socket] = [resized, *connections]
    if len(person.wait_for_server()) < _UNSENT_BYTES:
        watched.append(0)
    ready = select.select(watched, [], [], limit_s)[0]
    if resized in ready:
        _hear_signals(os.read(resized, 4096), screen.held, person)
        screen.tell(screen.told)
    if 0 in ready:
        person.type(_read_keys())
        if person.is_leaving:
            raise _Ended(ViewEnd("detached"))
    return any(connection in ready for connection in connections)


@contextlib.contextmanager
def _signals() -> Iterator[int]:
    """Inside, SIGTERM and SIGHUP raise `_Ended`; from the descriptor the numbers of other signals are read."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # once is enough: what follows puts the terminal back
        raise _Ended(ViewEnd("detached"))

    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    noted = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, *noted)}
    woken = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        for number in noted:
            if number != signal.SIGTSTP or before[number] != signal.SIG_IGN:
                signal.signal(number, lambda _number, _frame: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)
        yield reading
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            # A second request to end must not cut short what gives the terminal back.
            if number in noted or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)
        os.close(reading)
        os.close(writing)


def _view_once(line: WsClient, screen: _Screen, person: Person, resized: int) -> NoReturn:
    screen.lending = lending = Lending(line, person)
    try:
        polled = select.poll()
        polled.register(resized, select.POLLIN)
        polled.register(0, select.POLLIN)
        polled.register(line, select.POLLIN)
        screen.held.take_screen()
        person.connect(line)
        screen.show(line.receive())
        watching = writing = True
        while True:
            # Keys typed after the person leaves belong to the next program in this terminal.
            wanted = lending.is_watching and line.unsent < _UNSENT_BYTES and not person.is_leaving
            if watching != wanted:
                watching = wanted
                if watching:
                    polled.register(0, select.POLLIN)
                else:
                    polled.unregister(0)  # even without events, a terminal that hung up would be told of
            if writing != bool(line.unsent):
                writing = bool(line.unsent)
                polled.modify(line, select.POLLIN | (select.POLLOUT if writing else 0))
            ready = dict(polled.poll(_wait_ms(person, lending)))
            if resized in ready:
                _hear_signals(os.read(resized, 4096), screen.held, person)
            if lending.deadline is not None and time.monotonic() >= lending.deadline:
                lending.look()
            elif not ready and person.is_leaving:
                raise _Ended(ViewEnd("detached"))  # the server does not answer, and the person wants to go
            if 0 in ready:
                if lending.reads_keys:
                    keys = _read_keys()
                    person.type(keys)
                    lending.follow(keys)
                else:
                    lending.note_key()
            here = ready.get(line.fileno(), 0)
            if here & select.POLLOUT:
                line.flush()
            if here & ~select.POLLOUT:
                screen.show(line.receive())
                lending.follow()
    finally:
        lending.end()
        line.close()


def _hear_signals(numbers: bytes, held: tty.Held, person: Person) -> None:
    if signal.SIGTSTP in numbers:
        raise _Suspended(signal.SIGTSTP)
    if signal.SIGCONT in numbers:
        held.set_raw()  # in the background this stops us once more, before anything is drawn
        raise _Suspended(signal.SIGCONT)
    person.resize(*tty.size())


def _wait_ms(person: Person, lending: Lending) -> float | None:
    if person.is_leaving:
        return _LEAVING_S * 1000
    if lending.deadline is not None:
        return max(0.0, lending.deadline - time.monotonic()) * 1000 + 1
    return None


def _target(name: str, options: ViewOptions, has_prefix: bool) -> str:
    rows, cols = tty.size()
    asked: dict[str, object] = {"rows": rows, "cols": cols}
    if options.read_only:
        asked["read_only"] = "true"
    if options.status:
        asked["status"] = "true"
    if options.wheel:
        asked["wheel"] = "true"
    if has_prefix:
        asked["prefix"] = options.bindings.shown
    if options.scrollback_lines:
        asked["scrollback"] = options.scrollback_lines
    return f"/sessions/{quote(name, safe='')}/ws/view?{urlencode(asked)}"


def _read_keys() -> bytes:
    try:
        data = os.read(0, 65536)
    except OSError:
        data = b""
    if not data:
        raise _Ended(ViewEnd("the terminal is gone"))
    return data


class _Screen:
    """What the server says, done: pictures drawn, the end noticed."""

    def __init__(self, person: Person, held: tty.Held, shows_ended: bool) -> None:
        self.held = held
        self.shows_ended = shows_ended
        """Whether a session that had ended when we came is shown; else its end is the end here."""
        self.lending: Lending | None = None
        self._person = person
        self._row: int | None = None
        self.told = ""
        """What was told last."""

    def tell(self, text: str) -> None:
        """Say something in the last row while nobody else can; the next picture covers it."""
        self.told = text
        if self.held.has_screen:
            rows, cols = tty.size()
            tty.write_all(1, b"\x1b7\x1b[%d;1H\x1b[0;7m\x1b[2K %s\x1b[0m\x1b8" % (rows, text[: cols - 2].encode()))

    def show(self, messages: list[WsMessage]) -> None:
        pictures: list[bytes] = []
        for kind, payload in messages:
            if kind == "bytes":
                pictures.append(payload)
                continue
            tty.write_all(1, b"".join(pictures))
            pictures.clear()
            if kind == "close":
                self._hear_goodbye(payload)
            said = json.loads(payload)
            match said.get("type"):
                case "end":
                    self._row = int(said["row"])
                case "exit" if said.get("ended_before") and self.shows_ended:
                    self._person.hear(said)
                case "exit":
                    raise _Ended(ViewEnd("exited", said["exit_code"], row=self._row))
                case "host" if not said.get("online"):
                    self.tell(
                        f"{said.get('host')} is away, waiting for it · {self._person.bindings.shown} twice leaves"
                    )
                case "dismissed":
                    self._leave(str(said.get("reason", "detached")))
                case _ if self.lending is not None and self.lending.hear(said):
                    pass
                case _:
                    self._person.hear(said)
        tty.write_all(1, b"".join(pictures))

    def _hear_goodbye(self, payload: bytes) -> NoReturn:
        if int.from_bytes(payload[:2], "big") == 1000:
            self._leave(payload[2:].decode("utf-8", "replace") or "detached")
        raise WsLost

    def _leave(self, reason: str) -> NoReturn:
        if self._person.has_ended and self._person.is_leaving:
            raise _Ended(ViewEnd("exited", self._person.exit_code, row=self._row))
        raise _Ended(ViewEnd(reason, row=self._row))
