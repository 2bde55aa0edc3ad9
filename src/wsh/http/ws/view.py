"""The WebSocket of a viewer: composed pictures out, keys in.

Binary messages are bytes for an emulator one way and typed bytes the other. Text messages are JSON: `size`, `exit`, `input_mode`,
`taken`, `typed` (what of the input came, and what was written), `run_waits` (somebody's run waits until the line is empty), `renamed`, `error`, `end` (up to which row the last picture
reaches), `page_ended`, `wheel`, `notice` (what its screen lacks), `read_only` (a key was pressed where one may only look), `lendable`, `lent` and `returned` (about the viewer's
terminal, see `lent_terminal.py`), `dismissed` from us; `resize`, `fit` (give the session this size), `mark`
(answered when what was typed before has been taken), `move`, `pan`, `hint`, `page`, `look_back`, `live`, `capture`, `release`, `take_over`, `hand_back`, `run`, `lend`, `drawn`, `take_back` and
`detach` from the viewer.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from wsh.host.carrier import CALLER_HEADER
from wsh.http.route.table import HttpCall, Query
from wsh.http.server.serve import ConnectionPeer
from wsh.http.ws.far_stream import serve_far
from wsh.http.ws.lent_terminal import LentTerminal, NotLendable, plain_keys
from wsh.http.ws.sender import BINARY, TEXT, WsSender, make_frame
from wsh.http.ws.slow_consumer import dismiss_if_unread, get_allowance, has_room_for_picture
from wsh.session.input.receipt import COUNT_BITS, ID_BITS
from wsh.visual.input.keyboard import Direction
from wsh.visual.picture.page import LookBack, MarkKind, PageMark, TextPage
from wsh.visual.viewer.viewer import Viewer
from wsh.visual.viewer.viewers import Viewers
from wsh.wire.error import InvalidRequest, Refused, WshError
from wsh.wire.model.base import Model

log = logging.getLogger("wsh.http")

LineNumber: TypeAlias = Annotated[int, Field(ge=0)]
Character: TypeAlias = Annotated[int, Field(ge=0, le=1_000_000)]
Side: TypeAlias = Annotated[int, Field(ge=1, le=1000)]
EarlierLines: TypeAlias = Annotated[int, Field(ge=0, le=100_000)]


class ViewQuery(Query):
    rows: Side = 24
    cols: Side = 80
    read_only: bool = False
    status: bool = False
    """Whether the last row is a status line."""
    whole: bool = False
    """Whether pictures have the session's own size; rows and cols then only say what has room here."""
    scrollback: EarlierLines = 0
    """Earlier lines that are sent ahead of the first picture."""
    prefix: Annotated[str, Field(max_length=16, pattern=r"^[ -~]*$")] = ""
    """Name of a key that the viewer acts on itself: all that it sends is then the program's. Else Ctrl+\\ is acted on here."""
    input_id: Annotated[int, Field(ge=0, lt=1 << ID_BITS)] = 0
    """A number that the viewer chose: it is told what of its input was written (`typed`), also by another server, and sends the rest again."""
    typed: Annotated[int, Field(ge=0, lt=1 << COUNT_BITS)] = 0
    """Bytes of its input of which it knows that they were written."""
    wheel: bool = False
    """Whether `wheel` tells that it was turned up where the program does not want the mouse."""


class ViewerResize(Model):
    type: Literal["resize"]
    rows: Side
    cols: Side


class ViewerFit(Model):
    """Give the session the viewer's size."""

    type: Literal["fit"]


class Earlier(Model):
    """Send the picture anew, with so many earlier lines ahead of it; `scrollback` tells how many come."""

    type: Literal["scrollback"]
    lines: EarlierLines
    from_line: LineNumber | None = None
    """Not fewer than from this line on, whatever is printed until they are sent: there somebody reads."""
    epoch: int = 0


class TypedMark(Model):
    """Answered in kind when the program has taken everything that was typed here before: a paste can keep pace with it."""

    type: Literal["mark"]
    id: Annotated[int, Field(ge=0)]


class Move(Model):
    type: Literal["move"]
    top: Annotated[int, Field(ge=0, le=1000)]
    left: Annotated[int, Field(ge=0, le=1000)]


class Pan(Model):
    """Move the window on a picture that is larger than the viewer by half of its size."""

    type: Literal["pan"]
    direction: Direction


class Hint(Model):
    """Show a text in the last row; an empty one brings back what belongs there."""

    type: Literal["hint"]
    text: Annotated[str, Field(max_length=1000)]


class Back(Model):
    """Show earlier lines instead of the picture, from `line` on; `page_ended` tells that their numbers mean others now."""

    type: Literal["look_back"]
    epoch: int
    line: LineNumber
    cursor: tuple[LineNumber, Character]
    marks: Annotated[tuple[tuple[LineNumber, Character, Character, MarkKind], ...], Field(max_length=10_000)] = ()


class Pages(Model):
    """Show lines of text instead of the picture; `chosen` is the one that stands out."""

    type: Literal["page"]
    lines: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=1000)]
    chosen: int | None = None


class Ask(Model):
    """`live` brings the picture back, `capture` and `release` are about people's keys, `detach` sends this viewer away."""

    type: Literal["live", "detach", "capture", "release"]


class TakeOver(Model):
    type: Literal["take_over"]


class HandBack(Model):
    type: Literal["hand_back"]


class Lend(Model):
    """Read and write the viewer's own terminal in its place, until `returned`; the viewer does neither from now on."""

    type: Literal["lend"]
    device: Annotated[int, Field(ge=0)]
    """The number of the terminal, which must be the viewer's."""


class TakeBack(Model):
    """The viewer wants its terminal again; `returned` tells that nothing more is read or written there."""

    type: Literal["take_back"]


class TerminalDrawn(Model):
    """The viewer has written to its terminal all that came before `lent`, and nothing after."""

    type: Literal["drawn"]


class ViewerRun(Model):
    """Type a command and Enter, if the line is empty; what it prints is seen in the frames."""

    type: Literal["run"]
    command: Annotated[str, Field(max_length=1_048_576)]


Plain: TypeAlias = (
    ViewerResize | ViewerFit | Earlier | TypedMark | Move | Pan | Hint | Back | Pages | Ask | TakeOver | HandBack
)
Message: TypeAlias = Plain | ViewerRun | Lend | TerminalDrawn | TakeBack
_MESSAGE: TypeAdapter[Message] = TypeAdapter(
    Annotated[Message, Field(discriminator="type")],
    config=ConfigDict(defer_build=True),
)


_LAST = frozenset({"end", "exit", "dismissed"})
"""Messages after which the viewer may write to its terminal itself."""


class _Connection:
    """A viewer's connection, as the viewers of a session see it."""

    def __init__(self, websocket: WebSocket, allowance: int, lender: int | None = None, prefix: str = "") -> None:
        """`allowance` is in bytes, see `dismiss_if_unread`; `lender` is the process that may lend its terminal."""
        self.outlet = WsSender(websocket)
        self._allowance = allowance
        self._lender = lender
        self._plain = plain_keys(prefix) if lender is not None else None
        self._lent: LentTerminal | None = None

    def is_busy(self) -> bool:
        return not has_room_for_picture(self.outlet if self._lent is None else self._lent)

    def send(self, data: bytes) -> None:
        lent = self._lent
        if lent is not None and lent.is_held():
            lent.write(data)
            return
        self.give_back()
        self.outlet.write(make_frame(data, BINARY))

    def tell(self, message: dict[str, object]) -> None:
        if self._lent is not None and message["type"] in _LAST:
            self.give_back()
        dismiss_if_unread(self.outlet, self._allowance)
        self.outlet.write(make_frame(json.dumps(message).encode(), TEXT))

    def dismiss(self, reason: str) -> None:
        self.tell({"type": "dismissed", "reason": reason})
        self.outlet.close_soon(1000, reason)

    # the viewer's terminal

    def offer(self) -> None:
        """Tell a viewer that its terminal could be lent, if so."""
        if self._plain is not None:
            self.tell({"type": "lendable"})

    def borrow(self, device: int, on_keys: Callable[[bytes], None]) -> None:
        try:
            if self._lender is None or self._plain is None:
                raise NotLendable("this viewer cannot lend")
            self._lent = self._lent or LentTerminal(self._lender, device, self._plain, on_keys, self.give_back)
            self.tell({"type": "lent"})
        except NotLendable as problem:
            self.tell({"type": "returned", "refused": str(problem)})

    def begin(self) -> None:
        if self._lent is not None:
            self._lent.begin()

    def give_back(self, keys: bytes = b"") -> None:
        """The viewer reads and writes its terminal again: first what we have not written of a picture, then `keys`.

        `returned` is told once for every `lend`: a viewer that asked while we gave it back has its answer already, and may have lent it again.
        """
        lent, self._lent = self._lent, None
        if lent is not None:
            rest = lent.close()
            if rest:
                self.outlet.write(make_frame(rest, BINARY))
            self.tell({"type": "returned", "keys": keys.decode("latin-1")})

    def close(self) -> None:
        """The viewer is gone, or we are: nothing more is written."""
        if self._lent is not None:
            self._lent.close()
            self._lent = None


def _find_lender(call: HttpCall, asked: ViewQuery) -> int | None:
    """The process whose terminal this viewer may lend: the person's own, connected here by itself."""
    peer = _peer(call)
    if asked.read_only or not asked.prefix or not call.caller.is_owner or CALLER_HEADER in call.headers:
        return None
    return peer.pid if peer.door == "unix" and peer.fault is None and peer.pid else None


def _peer(call: HttpCall) -> ConnectionPeer:
    state = call.scope["state"]
    assert isinstance(state, dict)
    peer = state["peer"]
    assert isinstance(peer, ConnectionPeer)
    return peer


async def serve_view(call: HttpCall, websocket: WebSocket) -> None:
    if "/" in call.session_name:
        return await serve_far(call, websocket, "view")
    session = call.rooms.registry.get_session(call.session_name)
    asked = call.read_query(ViewQuery)
    viewers = call.rooms.stages.viewers_of(session)
    connection = _Connection(websocket, get_allowance(call.rooms.settings), _find_lender(call, asked), asked.prefix)
    viewer: Viewer | None = None

    def dismiss() -> None:
        if viewer is not None:
            viewers.dismiss(viewer, "detached")
        else:
            connection.dismiss("detached")

    leave = call.rooms.clients.enter(session, call.caller, "view", dismiss)
    try:
        await websocket.accept()
        viewer = viewers.attach(
            connection,
            asked.rows,
            asked.cols,
            name=call.caller.name,
            # An agent may look; its input has a door of its own, where it is known to be an agent's.
            read_only=asked.read_only or not call.caller.is_owner,
            status=asked.status,
            whole=asked.whole,
            scrollback_lines=asked.scrollback,
            prefix=asked.prefix,
            wheel=asked.wheel,
            input_id=asked.input_id,
            typed=asked.typed,
        )
        keys = partial(_type, viewers, viewer)
        connection.outlet.hear_bytes(keys)
        if not session.running:
            viewers.frames.tell_end(viewer)
            connection.tell({"type": "exit", "exit_code": session.exit_code, "ended_before": True})
        else:
            connection.offer()
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if message.get("bytes"):
                keys(message["bytes"])
            elif message.get("text") is not None:
                _obey(viewers, viewer, connection, message["text"], keys)
    except (WebSocketDisconnect, OSError):
        pass
    finally:
        leave()
        connection.close()
        connection.outlet.hear_bytes(None)
        if viewer is not None:
            viewers.detach(viewer)


def _type(viewers: Viewers, viewer: Viewer, data: bytes) -> None:
    try:
        viewers.keys.press(viewer, data)
    except Exception:
        log.exception("keys of viewer %s failed", viewer.id)


def _obey(viewers: Viewers, viewer: Viewer, connection: _Connection, text: str, keys: Callable[[bytes], None]) -> None:
    try:
        try:
            message = _MESSAGE.validate_json(text)
        except ValidationError as problem:
            raise InvalidRequest(
                "The viewer's message cannot be understood.", hint=str(problem.errors(include_url=False)[0]["msg"])
            ) from None
        if isinstance(message, Lend):
            connection.borrow(message.device, keys)
        elif isinstance(message, TerminalDrawn):
            connection.begin()
        elif isinstance(message, TakeBack):
            connection.give_back()
        elif not isinstance(message, ViewerRun):
            _act(viewers, viewer, message)
        elif viewer.read_only:
            raise Refused("A viewer that only looks cannot run anything.", hint="Attach without read_only.")
        else:
            viewers.session.lasting.start(_run(viewers, viewer, connection, message.command))
    except WshError as error:
        connection.tell({"type": "error", **error.to_wire()})


async def _run(viewers: Viewers, viewer: Viewer, connection: _Connection, command: str) -> None:
    viewers.keys.note_typing(viewer)
    try:
        await viewers.session.type_command(command, viewer.actor)
    except WshError as error:
        connection.tell({"type": "error", **error.to_wire()})


def _act(viewers: Viewers, viewer: Viewer, message: Plain) -> None:
    match message:
        case ViewerResize(rows=rows, cols=cols):
            viewers.resize(viewer, rows, cols)
        case ViewerFit():
            if viewer.read_only:
                raise Refused("A viewer that only looks cannot resize.", hint="Attach without read_only.")
            viewers.sizes.fit(viewer)
        case Earlier(lines=lines, from_line=line, epoch=epoch):
            viewers.frames.renew(viewer, lines, None if line is None else (epoch, line))
        case TypedMark(id=number):
            viewers.keys.typing.after(lambda: viewer.outlet.tell({"type": "mark", "id": number}))
        case Move(top=top, left=left):
            viewers.frames.move(viewer, top, left)
        case Pan(direction=direction):
            viewers.keys.obey(viewer, direction)
        case Hint(text=text):
            viewers.frames.say(viewer, text)
        case Back():
            marks = tuple(PageMark(*mark) for mark in message.marks)
            viewers.frames.show_page(viewer, LookBack(message.epoch, message.line, message.cursor, marks))
        case Pages(lines=lines, chosen=chosen):
            viewers.frames.show_page(viewer, TextPage(tuple(lines), chosen))
        case Ask(type="live"):
            viewers.frames.show_page(viewer, None)
        case Ask(type="detach"):
            viewers.leave(viewer)
        case Ask(type="capture"):
            viewers.keys.capture(viewer)
        case Ask(type="release"):
            viewers.keys.release(viewer)
        case TakeOver():
            if viewer.read_only:
                raise Refused("A viewer that only looks cannot take over.", hint="Attach without read_only.")
            viewers.session.input.take_over(viewer.id)
        case HandBack():
            if viewer.read_only:
                raise Refused("A viewer that only looks cannot hand back.", hint="A viewer that types here can.")
            viewers.session.input.hand_back()
