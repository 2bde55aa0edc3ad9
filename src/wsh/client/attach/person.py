"""The person at `wsh attach`: what their keys do besides reaching the program, and what the server tells them about.

Keys go to the server as they come. Behind the prefix they are commands, most of which the server carries out; it also draws the hint, as it
draws everything. While a page of our own is open (help, earlier lines, the list of sessions) keys belong to that page. In a session that has
ended there is no program to type to: commands then need no prefix.
"""

from __future__ import annotations

import base64
import os
import signal
import time
from typing import TYPE_CHECKING, Protocol

from wsh.client import tty
from wsh.client.attach.keystroke import Keystroke, read_keystrokes
from wsh.client.attach.prefix import Bindings, Prefix, fit_words
from wsh.wire.bracketed_paste import PASTE_BEGIN, PasteInPieces
from wsh.wire.error import WshError
from wsh.wire.json.object import JsonObject
from wsh.wire.system.place import find_places

if TYPE_CHECKING:
    from wsh.client.attach.look_back import CopyKeys
    from wsh.client.attach.page import AttachPage, Done

TWICE_S = 0.5
"""Within so long of taking captured keys back, the prefix means the second of two presses."""
_LEAVING = ("q", "enter", "ctrl+c", "ctrl+d")
_READING = ("up", "down", "k", "j", "pageup", "pagedown", "wheel_up", "g", "G", "ctrl+u", "ctrl+b", "/", "v", "V")
"""Keys that open the earlier lines of a session that has ended, and count there."""


class Sender(Protocol):
    """The way to the server."""

    def send_bytes(self, data: bytes) -> None: ...

    def send_json(self, message: dict[str, object]) -> None: ...


class _Waiting:
    """Instead of a way to the server while there is none: what was typed is kept for the next one."""

    def __init__(self) -> None:
        self.unsent = bytearray()

    def send_bytes(self, data: bytes) -> None:
        self.unsent += data

    def send_json(self, message: dict[str, object]) -> None:
        """Nobody is there to do it."""


class Elsewhere(Exception):
    """The person goes to another session, whose name `Person.session` is now."""


class Person:
    def __init__(
        self, session: str, bindings: Bindings, *, read_only: bool = False, copy_keys: CopyKeys = "vi"
    ) -> None:
        self._line: Sender = _Waiting()
        self.session = session
        """The name of the session, which may be changed while we look."""
        self._came_from = ""
        """The session that was left for this one, until this one is shown."""
        self._why_back = ""
        """Why the person is in that one again."""
        self.bindings = bindings
        self.read_only = read_only
        self._why_read_only = "read only: attach without --read-only to type"
        self.has_prefix = True
        """Whether keys are acted on here."""
        self.is_leaving = False
        self.has_ended = False
        """Whether the session had ended before the person came."""
        self.exit_code: int | None = None
        self._copy_keys = copy_keys
        self._page: AttachPage | None = None
        self._earlier: AttachPage | None = None
        """The page of earlier lines, if it is open or left for a moment."""
        self._left: AttachPage | None = None
        """Earlier lines that were left by the prefix, and are gone back to."""
        self._prefix = Prefix(bindings)
        self._paste = PasteInPieces()
        """What is pasted, but not for the program: it began at a page, or in a session that has ended."""
        self._viewer = ""
        self._taken_by: str | None = None
        self._is_captured = False
        self._released = float("-inf")
        self._has_told = False
        """Whether the last row tells something that the next key may take away."""
        self._said = 0
        """How often something was said in the last row."""
        self._size = (24, 80)
        """Rows and columns of this terminal."""
        self._picture = (1, 1)
        """Rows and columns of the session."""

    def wait_for_server(self) -> bytearray:
        """There is no connection for now. What is typed for the program is collected in the result, until there is one."""
        if not isinstance(self._line, _Waiting):
            self._line = _Waiting()
        return self._line.unsent

    def connect(self, line: Sender) -> None:
        """A new connection: what was known of the server is not known any more.

        Keys typed meanwhile still belong to the page or to the prefix that was open, so that is shown again.
        """
        kept = self._line.unsent if isinstance(self._line, _Waiting) else b""
        self._line = line
        if kept:
            line.send_bytes(bytes(kept))
        self._size = tty.size()
        self._came_from = ""
        self._is_captured, self._taken_by, self.has_ended = False, None, False
        if self._page is not None:
            self._show()
        elif self._prefix.is_open:
            self._say(self.bindings.hint(self._size[1]))
        if self._why_back:
            self._tell(self._why_back)
            self._why_back = ""

    def go_back(self, why: str) -> bool:
        """Return to the session that was left for one that cannot be shown. False if there is none."""
        if not self._came_from:
            return False
        self.session, self._came_from, self._why_back = self._came_from, "", why
        return True

    # what the server says

    def hear(self, said: JsonObject) -> None:
        match said.get("type"):
            case "size":
                self._viewer = str(said.get("viewer", ""))
                self._picture = (int(said["rows"]), int(said["cols"]))
            case "input_mode":
                self._is_captured = said.get("mode") == "capture"
            case "taken":
                self._taken_by = said.get("by")
            case "host" if said.get("online"):  # a new connection to the session's machine, and a new viewer there
                self.connect(self._line)
            case "renamed":
                self.session = str(said["name"])
            case "wheel":
                if self._page is None:
                    self._open_page("wheel")
            case "page_ended":
                self._page = self._left = None
                self._tell("these lines are no longer kept")
            case "exit":
                self.has_ended, self.exit_code = True, said.get("exit_code")
                if self._page is None:
                    self._say("")
            case "read_only":
                if not self.read_only and not self.has_ended:
                    self.read_only, self._why_read_only = True, "read only: only the owner's terminals type here"
                    self._tell(self._why_read_only)
            case "error":
                self._tell(str(said.get("message", "")))
            case _:
                pass

    # what the person does

    @property
    def types_plainly(self) -> bool:
        """Whether the next key goes to the program unless it is the prefix: nothing else waits for one."""
        return (
            self.has_prefix
            and self._page is None
            and self._left is None
            and not (self.read_only or self.has_ended or self.is_leaving or self._has_told or self._paste.is_open)
            and self._prefix.is_at_rest(time.monotonic())
        )

    def type(self, data: bytes) -> None:
        if not self.has_prefix:
            self._line.send_bytes(data)
            return
        if self.is_leaving:
            return  # it was not meant for the program any more
        data = self._skip_paste(data)
        if not data:
            return
        had_told, self._has_told = self._has_told, False
        said = self._said
        if self._page is not None:
            self._turn(data)
        else:
            self._type(data)
        if had_told and said == self._said and self._page is None:
            self._say("")
        if self._paste.is_open:
            self._prefix.paste.close()  # the rest of it never comes there

    def _skip_paste(self, data: bytes) -> bytes:
        """What comes behind the paste that is not for the program."""
        return data[self._paste.read(data, 0).end :] if self._paste.is_open else data

    def _note_paste(self, key: Keystroke) -> None:
        """A key that is pasted text may have arrived in part: the rest is neither keys nor for the program."""
        if key.name == "paste":
            self._paste.open()
            self._paste.read(key.raw, len(PASTE_BEGIN))

    def _type(self, data: bytes) -> None:
        for piece in self._prefix.split(data, time.monotonic(), self._is_window):
            if self.is_leaving:
                return
            if isinstance(piece, str):
                if self._page is not None:
                    self._close_page()
                self._obey_on_page(piece)
            elif self._page is not None:
                self._turn(piece)  # typed together with the key that opened the page
            elif self.has_ended:
                self._press_ended(piece)
            else:
                self._line.send_bytes(piece)
                self._released = float("-inf")
                if self.read_only and any(_is_pressed(key) for key in read_keystrokes(piece)):
                    self._tell(self._why_read_only)

    def _press_ended(self, data: bytes) -> None:
        """Keys at a session that has ended: they read it, or leave."""
        data, at = self._skip_paste(data), 0
        for key in read_keystrokes(data):
            at += len(key.raw)
            self._note_paste(key)
            command = self.bindings.by_key.get(key.name, "")
            if key.name in _LEAVING or command == "detach":
                self._obey("detach")
                return
            if key.name in _READING:
                self._open_page("wheel" if key.name == "wheel_up" else "scroll")
                at -= len(key.raw)
            elif command in ("help", "scroll", "sessions"):
                self._open_page(command)
            elif _is_pressed(key):
                self._tell(f"{self.session} has ended, nothing can be typed · q leaves")
            if self._page is not None:
                self._turn(data[at:])
                return

    def resize(self, rows: int, cols: int) -> None:
        self._size = (rows, cols)
        self._line.send_json({"type": "resize", "rows": rows, "cols": cols})
        if self._page is not None:
            self._show()
        elif self._prefix.is_open:
            self._say(self.bindings.hint(cols))
        elif self.has_ended:
            self._say("")

    @property
    def _is_window(self) -> bool:
        return self._picture[0] > self._size[0] - 1 or self._picture[1] > self._size[1]

    def _obey_on_page(self, command: str) -> None:
        """Carry out a command; where earlier lines were open and it leads nowhere else, they are gone back to."""
        if self._left is None or command in ("open", "help", "sessions", "detach"):
            self._obey(command)
            if self._left is not None and command == "open" and not self._prefix.is_open:
                self._return_to_page()  # it only took captured keys back
        elif command in ("scroll", "cancel", "unknown"):
            self._return_to_page()
            if command == "unknown":
                self._obey(command)
        else:
            self._close_page()
            self._obey(command)

    def _return_to_page(self) -> None:
        self._page, self._left = self._left, None
        self._show()

    def _obey(self, command: str) -> None:
        if command == "open":
            self._open()
            return
        if command in ("take_over", "capture", "literal", "fit") and (self.has_ended or self.read_only):
            if self.has_ended:
                self._tell(f"{self.session} has ended, and can only be read")
            else:
                self._tell(self._why_read_only)
            return
        if command == "unknown":
            self._tell_unknown(self._prefix.unknown)
            return
        self._say("")
        match command:
            case "detach":
                self.is_leaving = True
                self._line.send_json({"type": "detach"})
            case "take_over":
                mine = self._taken_by is not None and self._taken_by == self._viewer
                self._line.send_json({"type": "hand_back" if mine else "take_over"})
            case "capture":
                self._line.send_json({"type": "capture"})
            case "fit":
                self._line.send_json({"type": "fit"})
            case "literal":
                self._line.send_bytes(self.bindings.literal)
            case "suspend":
                os.kill(os.getpid(), signal.SIGTSTP)
            case "up" | "down" | "left" | "right":
                self._line.send_json({"type": "pan", "direction": command})
            case "help" | "scroll" | "sessions":
                self._open_page(command)
            case _:
                pass

    def _open(self) -> None:
        """The prefix was pressed: it takes captured keys back, and else says what may follow."""
        now = time.monotonic()
        if not self.read_only:
            # Also when we know of none: a capture may be on its way here.
            self._line.send_json({"type": "release"})
        if self._is_captured:
            # Not a prefix then: what is typed next is meant for the program, or is the second of two presses.
            self._prefix.close()
            self._is_captured, self._released = False, now
        elif now - self._released <= TWICE_S:
            self._prefix.close()
            self._obey("detach")
        else:
            self._say(self.bindings.hint(self._size[1]))

    # pages

    def _open_page(self, command: str) -> None:
        try:
            self._page = self._make_page(command)
            if command in ("scroll", "wheel"):
                self._earlier = self._page
            self._show()
        except WshError as problem:
            self._close_page(problem.message)

    def _make_page(self, command: str) -> AttachPage:
        # Imported when they are wanted: a person who only types starts sooner.
        if command == "help":
            from wsh.client.attach.help import HelpPage

            return HelpPage(self.bindings, self._copy_keys)
        from wsh.client.attach.ask import Questions

        questions, session = Questions(find_places().socket), self.session
        if command == "sessions":
            from wsh.client.attach.switcher import SwitcherPage

            return SwitcherPage(questions, session)
        from wsh.client.attach.column import character_at
        from wsh.client.attach.history import History
        from wsh.client.attach.look_back import LookBackPage

        screen = questions.read_screen(session)
        history = History(lambda first, count: questions.read_lines(session, first, count), self._picture[1])
        line = int(screen["first_line_index"]) + int(screen["cursor"]["row"])
        cursor = (line, character_at(history.text(line), int(screen["cursor"]["col"])))
        return LookBackPage(history, cursor, keys=self._copy_keys, by_wheel=command == "wheel")

    def _turn(self, data: bytes) -> None:
        """Give keys to the open page. Keys after the one that closes it go to the program."""
        data, at = self._skip_paste(data), 0
        try:
            for key in read_keystrokes(data):
                at += len(key.raw)
                self._note_paste(key)
                assert self._page is not None
                if key.name == self.bindings.prefix:
                    if self._page is self._earlier:
                        self._left, self._page = self._page, None
                    else:
                        self._close_page()
                    self.type(data[at - len(key.raw) :])
                    return
                done = self._page.press(key)
                if done is not None:
                    self._finish(done)
                    if at < len(data):
                        self.type(data[at:])
                    return
            self._show()
        except WshError as problem:
            self._close_page(problem.message)

    def _show(self) -> None:
        if self._page is not None:
            for message in self._page.show(*self._size):
                self._line.send_json(message)

    def _finish(self, done: Done) -> None:
        if self._left is not None and not done.session:
            self._return_to_page()
            return
        self._close_page(done.told)
        if done.copied:
            tty.write_all(1, b"\x1b]52;c;%s\x1b\\" % base64.b64encode(done.copied.encode("utf-8", "replace")))
        if done.session:
            self._came_from, self.session = self.session, done.session
            raise Elsewhere

    def _close_page(self, told: str = "") -> None:
        self._page = self._left = self._earlier = None
        self._line.send_json({"type": "live"})
        if told:
            self._tell(told)
        else:
            self._say("")

    def _tell(self, text: str) -> None:
        """Show a text in the last row until the next key."""
        self._has_told = True
        self._say(text)

    def _tell_unknown(self, key: str) -> None:
        if key in ("up", "down", "left", "right"):
            self._tell("nothing to move: all of the session is shown")
        else:
            self._tell(f"no such key: {key} · {self.bindings.shown} {self.bindings.keys['help']} for help")

    def _say(self, text: str) -> None:
        """Show a text in the last row, or what belongs there."""
        self._said += 1
        if not text and self.has_ended:
            keys = self.bindings.keys
            status = "" if self.exit_code is None else f" with status {self.exit_code}"
            words = [f"{self.session} has ended{status}", "q leaves", f"{keys['scroll']} or PgUp earlier lines"]
            text = fit_words([*words, "/ search", f"{keys['sessions']} sessions"], self._size[1])
        self._line.send_json({"type": "hint", "text": text[:1000]})


def _is_pressed(key: Keystroke) -> bool:
    return bool(key.name) and not key.name.startswith(("mouse_", "wheel_"))
