"""The prefix key of `wsh attach`: which keys are the viewer's own, and which go to the program untouched.

Nothing is held back: keys pass at once unless the prefix was pressed. Behind it comes one key of the table below. Any other key does nothing
and is said to; it never reaches the program, where it would be typed by mistake. What is pasted is never a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wsh.client.attach.keystroke import read_keystroke
from wsh.wire.bracketed_paste import BEGIN_PATTERN, PasteInPieces, starts_paste
from wsh.wire.setting import SettingError

PAN_S = 0.5
"""A step of the window may be followed by more arrows for so long."""


class PrefixCommand(NamedTuple):
    name: str
    key: str
    label: str
    help: str
    in_hint: bool = True


COMMANDS = (
    PrefixCommand("help", "?", "help", "this page"),
    PrefixCommand("detach", "d", "detach", "leave; the session goes on"),
    PrefixCommand("scroll", "[", "scroll", "earlier lines: move, search, select and copy"),
    PrefixCommand("sessions", "s", "sessions", "go to another session"),
    PrefixCommand("take_over", "t", "take over", "refuse agents' input until you press it again or leave"),
    PrefixCommand("capture", "c", "capture", "send your keys to agents as events; the prefix takes them back"),
    PrefixCommand("literal", "\\", "literal", "send the prefix key itself to the program"),
    PrefixCommand("fit", "f", "fit", "give the session the size of this terminal", False),
    PrefixCommand("suspend", "ctrl+z", "suspend", "back to your shell, whose fg brings this back", False),
)
_ALIASES = {"ctrl+t": "take_over", "pageup": "scroll"}
_ARROWS = ("up", "down", "left", "right")


class Bindings:
    """The prefix and the keys behind it, as the settings say."""

    def __init__(self, prefix: str = "ctrl+\\", changes: Sequence[str] = ()) -> None:
        """`changes` are texts such as `detach=x`. Raises SettingError."""
        self.prefix = prefix.strip().lower()
        character = self.prefix.removeprefix("ctrl+")
        if (
            len(character) != 1
            or not self.prefix.startswith("ctrl+")
            or character not in "abcdefghijklmnopqrstuvwxyz\\]^_"
        ):
            raise SettingError(f"attach.prefix must be ctrl+ and a letter or one of \\ ] ^ _, not {prefix!r}")
        self.literal = bytes((ord(character.upper()) & 0x1F,))
        self.keys = {command.name: command.key for command in COMMANDS}
        for change in changes:
            name, _, key = (part.strip() for part in change.partition("="))
            if name not in self.keys or not key:
                raise SettingError(
                    f"attach.keys: {change!r} is no COMMAND=KEY; the commands are {', '.join(self.keys)}"
                )
            self.keys[name] = key
        self.by_key = _ALIASES | {key: name for name, key in self.keys.items()}
        if len(set(self.keys.values())) < len(self.keys):
            raise SettingError("attach.keys: two commands have the same key")

    @property
    def shown(self) -> str:
        """The prefix as texts name it: `Ctrl+\\`."""
        return "Ctrl+" + self.prefix.removeprefix("ctrl+").upper()

    def hint(self, width: int) -> str:
        """What may follow the prefix, as much as fits in `width` columns."""
        return fit_words([f"{self.keys[c.name]} {c.label}" for c in COMMANDS if c.in_hint], width)


def fit_words(parts: Sequence[str], width: int) -> str:
    """The parts with dots between, as many as fit in `width` columns behind a blank."""
    text = ""
    for part in parts:
        longer = f"{text} · {part}" if text else part
        if len(longer) > width - 1:
            break
        text = longer
    return text or parts[0][: max(0, width - 1)]


class Prefix:
    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.is_open = False
        self.unknown = ""
        """The key of the last `unknown`."""
        self.paste = PasteInPieces()
        """What is pasted for the program."""
        self._panned = float("-inf")
        code = ord(bindings.prefix.removeprefix("ctrl+"))
        ctrl = rb"(?::\d*)*;(?:5|69|133|197)"  # whatever the lock keys are
        self._special = re.compile(
            rb"(?P<prefix>%s|\x1b\[%d%s(?::1)?u|\x1b\[27;5;%d~)" % (re.escape(bindings.literal), code, ctrl, code)
            + rb"|(?P<nothing>\x1b\[%d%s:[23]u)" % (code, ctrl)
            + rb"|(?P<paste>"
            + BEGIN_PATTERN
            + rb")"
        )

    def split(self, data: bytes, now: float, is_window: bool = False) -> Iterator[bytes | str]:
        """Input in pieces: bytes for the program, and names of commands.

        Besides those of `COMMANDS`: `open` when the prefix was pressed, `cancel`, `unknown` for a key that means nothing, and `up`, `down`, `left`, `right` where
        the terminal `is_window`.
        """
        at = 0
        while at < len(data):
            if self.paste.is_open:
                end = self.paste.read(data, at).end
                yield data[at:end]
                at = end
                continue
            if self.is_open or now - self._panned <= PAN_S:
                pieces, at = self._obey(data, at, now, is_window)
                yield from pieces
                continue
            found = self._special.search(data, at)
            if found is None:
                yield data[at:]
                return
            if found.start() > at:
                yield data[at : found.start()]
            at = found.end()
            if found["paste"]:
                self.paste.open()
                yield found[0]
            elif found["prefix"]:
                self.is_open = True
                yield "open"

    def close(self) -> None:
        self.is_open = False

    def is_at_rest(self, now: float) -> bool:
        """Whether the next key goes to the program unless it is the prefix."""
        return not (self.is_open or self.paste.is_open or now - self._panned <= PAN_S)

    def _obey(self, data: bytes, at: int, now: float, is_window: bool) -> tuple[list[bytes | str], int]:
        """What the key at `at` asks for behind the prefix, and where it ends."""
        stroke = read_keystroke(data, at)
        end = at + len(stroke.raw)
        if not stroke.name:
            return ([] if self._special.match(data, at) else [stroke.raw]), end
        if is_window and stroke.name.rpartition("+")[2] in _ARROWS:
            self.is_open, self._panned = False, now
            return [stroke.name.rpartition("+")[2]], end
        self._panned = float("-inf")
        if not self.is_open:
            return [], at
        self.is_open = False
        if stroke.name == self.bindings.prefix:
            return ["detach"], end
        if stroke.name in self.bindings.by_key:
            return [self.bindings.by_key[stroke.name]], end
        if stroke.name == "escape":
            return ["cancel"], end
        if starts_paste(stroke.raw):
            return ["cancel"], at
        self.unknown = stroke.name
        return ["unknown"], end
