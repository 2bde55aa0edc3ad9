"""The line that is being typed: what stands there, who typed it and when.

An integrated shell knows its own line, and tells it when a private key is pressed (`turn` presses it). `TypedLine` is what we
know without asking: everything that anybody typed since the last Enter. It says who the author is, and it is the answer
itself where no shell of ours reads: in a nested shell, or while the kernel collects a line for a program. It knows nothing
of sessions or clocks other than the times it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from wsh.session.event import Actor
from wsh.wire.bracketed_paste import PASTE_BEGIN, PasteInPieces, starts_paste
from wsh.wire.json.object import JsonObject

Editor: TypeAlias = Literal["", "emacs", "vi"]
"""How an integrated shell edits its line; empty if it does not, or if it has no private keys."""

ASK, TAKE, PUT_BACK, ASK_REST = b"\x1b[5180~", b"\x1b[5181~", b"\x1b[5182~", b"\x1b[5183~"
"""Private keys of our integration: tell the line; keep it and empty it; put the kept one back; tell the rest of a command."""

_MOST_BYTES = 16 * 1024
_MOST_KEPT_BYTES = 2000  # the keeper remembers 64 KiB of a child, escaped
_ENTER = b"\r\n"
_ENDS_ANY = b"\x03\x1c"  # Ctrl+C and Ctrl+\ drop the line
_ENDS_CANONICAL = b"\x04\x1a"  # Ctrl+D hands it over, Ctrl+Z drops it
_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
_OPEN_KEYS = b"\x1b\x16\x11\x18"  # Escape, Ctrl+V, Ctrl+Q and Ctrl+X: what comes next is part of the same key
_SEARCH = b"\x12\x13"
REPORTS = re.compile(rb"\x1b\[(?:<[0-9;]*[Mm]|M...|[IO])", re.DOTALL)
"""What a viewer's terminal tells by itself: the mouse, and whether it is looked at. Nobody typed that."""


@dataclass(frozen=True)
class LineModes:
    """What the terminal does with a typed byte."""

    canonical: bool
    echo: bool
    group: int
    """The process group in front."""


@dataclass(frozen=True)
class ShellLine:
    """What an integrated shell says of its line."""

    text: str
    continued: bool
    """It asks for the rest of a command: what came before stands in earlier lines."""
    before: str = ""
    """Those earlier lines, where the shell knows them."""
    command_mode: bool = False
    """vi's command mode: letters are commands."""

    @property
    def empty(self) -> bool:
        return not self.text and not self.continued


@dataclass(frozen=True)
class LineInfo:
    """A line that is not empty, as a refusal tells it."""

    text: str | None
    """None where it must not be shown (a hidden prompt) or cannot be known."""
    continued: bool = False
    author: Actor | None = None
    at: float | None = None
    """When its author typed last, in seconds since the epoch."""

    def to_wire(self) -> JsonObject:
        told: JsonObject = {"text": self.text, "continuation": self.continued, "typed_by": None, "typed_at": None}
        if self.author is not None:
            told["typed_by"] = {"kind": self.author.kind, "id": self.author.id}
        if self.at is not None:
            told["typed_at"] = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")
        return told


@dataclass
class TypedLine:
    """Fed every input, in order, with the modes of that moment."""

    authors: dict[Actor, float] = field(default_factory=dict)
    """Who typed something that no Enter has completed, and when last (seconds since the epoch)."""
    entered: tuple[float, int] = (0.0, 0)
    """When a line was last completed or dropped for the shell (monotonic), and how often it will then have asked for a line at least."""
    entered_by: Actor | None = None
    """Who pressed Enter last."""
    changed: Callable[[], None] = lambda: None
    """Called when a line that stands there has become another."""
    _text: bytearray = field(default_factory=bytearray)
    _opaque: bool = False
    """Keys were pressed whose effect on the line cannot be known, such as the arrows."""
    _hidden: bool = False
    _canonical: bool = False
    _group: int = 0
    _paste: PasteInPieces = field(default_factory=PasteInPieces)
    _searching: bool = False
    _last: int = 0

    def note(
        self,
        data: bytes,
        actor: Actor,
        modes: LineModes,
        now: float,
        wall: float,
        asked: int | None = None,
        unread: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`asked` counts the times that an integrated shell has asked for a line so far; None if it does not read one now.

        `unread` tells how many typed bytes could be read and have not been, these among them unless the kernel collects a line.
        """
        moved = self.pending and not self._canonical and (modes.canonical or modes.group != self._group)
        if moved and (unread() or 0) <= (0 if modes.canonical else len(data)):
            self.forget()  # what was typed before went to another program
        self._canonical, self._group = modes.canonical, modes.group
        at = 0
        while at < len(data):
            if self._paste.is_open:
                text, at, _ = self._paste.read(data, at)
                self._add(text, actor, wall, modes)
            elif not modes.canonical and starts_paste(data, at):
                self._paste.open()
                at += len(PASTE_BEGIN)
            else:
                at = self._key(data, at, actor, modes, now, wall, asked)
        if data:
            self._last = data[-1]
        if self.pending:
            self.changed()

    def _key(
        self, data: bytes, at: int, actor: Actor, modes: LineModes, now: float, wall: float, asked: int | None
    ) -> int:
        byte = data[at]
        if byte in _ENTER or byte in _ENDS_ANY or (modes.canonical and byte in _ENDS_CANONICAL):
            self.forget()
            if byte in _ENTER:
                self.entered_by = actor
            if (byte in _ENTER or byte == 0x03) and asked is not None:
                last, due = self.entered
                self.entered = (now, (due if due > asked and now - last < 1.0 else asked) + 1)
            return at + 1
        if byte == 0x1B:
            found = _ESCAPE.match(data, at)
            assert found is not None
            self._opaque = True
            self.authors[actor] = wall
            return found.end()
        if byte in b"\x7f\x08\x15\x17":
            self._erase(byte, actor, modes, wall)
            return at + 1
        if byte == 0x0C and not modes.canonical:
            return at + 1  # Ctrl+L draws the screen again
        if byte < 0x20 and byte != 0x09:
            self._opaque = self._opaque or byte != 0x04
            self._searching = self._searching or byte in _SEARCH
            self.authors[actor] = wall
            return at + 1
        end = at + 1
        while end < len(data) and data[end] >= 0x20 and data[end] != 0x7F:
            end += 1
        self._add(data[at:end], actor, wall, modes)
        return end

    def _add(self, data: bytes, actor: Actor, wall: float, modes: LineModes) -> None:
        if not data:
            return
        self.authors[actor] = wall
        if modes.canonical and not modes.echo:
            self._hidden = self._opaque = True  # never kept: it is a secret
        elif len(self._text) < _MOST_BYTES:
            self._text += data[: _MOST_BYTES - len(self._text)]

    def _erase(self, byte: int, actor: Actor, modes: LineModes, wall: float) -> None:
        if byte == 0x15 and (modes.canonical or not self._opaque):
            self.forget()
            return
        if self._opaque:
            self.authors[actor] = wall
            return
        text = self._text.decode("utf-8", "replace")
        text = re.sub(r"\S*\s*\Z", "", text) if byte == 0x17 else text[:-1]
        self._text = bytearray(text.encode("utf-8"))
        if not self._text:
            self.forget()
        else:
            self.authors[actor] = wall

    def forget(self) -> None:
        """The line is known to be empty."""
        if self.authors:
            self.changed()
        self.authors.clear()
        self._text.clear()
        self._opaque = self._hidden = self._searching = False
        self._paste.close()
        self._last = 0

    def restore(self, text: str, author: Actor, at: float, modes: LineModes) -> None:
        """A line that was taken away stands there again."""
        self.forget()
        self._text = bytearray(text.encode("utf-8", "replace")[:_MOST_BYTES])
        self._canonical, self._group = modes.canonical, modes.group
        self.authors = {author: at}
        self.changed()

    # over a restart

    def facts(self) -> JsonObject | None:
        """What a successor needs; None if nothing stands there. For the keeper's memory, never for a disk: a relay may hide the text."""
        if not self.pending:
            return None
        known = not self._hidden and len(self._text) <= _MOST_KEPT_BYTES
        return {
            "authors": [[actor.kind, actor.id, at, actor.connection] for actor, at in self.authors.items()],
            "text": self._text.decode("utf-8", "replace") if known else None,
            "opaque": self._opaque,
            "hidden": self._hidden,
            "canonical": self._canonical,
            "group": self._group,
        }

    def recall(self, facts: JsonObject) -> None:
        self.authors = {Actor(kind, id, whose): float(at) for kind, id, at, whose in facts["authors"]}
        text = facts.get("text")
        self._text = bytearray((text or "").encode("utf-8"))
        self._opaque = text is None or bool(facts["opaque"])
        self._hidden, self._canonical = bool(facts["hidden"]), bool(facts["canonical"])
        self._group = int(facts["group"])

    @property
    def pending(self) -> bool:
        return bool(self.authors)

    @property
    def has_keys(self) -> bool:
        """Whether keys were pressed that may have started anything, such as Ctrl+T."""
        return self.pending and self._opaque

    def stands(self, modes: LineModes, unread: Callable[[], int | None] = lambda: None) -> bool:
        """Whether an unfinished line waits for the program that reads the terminal now.

        What was typed while the kernel collects lines stays there for the next reader. Keys go to the program that was in front, unless
        it started another before it read them.
        """
        return self.pending and (self._canonical or modes.group == self._group or bool(unread()))

    @property
    def author(self) -> Actor | None:
        """Whose line it is: a person's if a person typed any of it, else that of the last author."""
        people = [actor for actor in self.authors if actor.kind == "person"]
        known = people or list(self.authors)
        return max(known, key=lambda actor: self.authors[actor]) if known else None

    def describe(self) -> LineInfo:
        author = self.author
        text = None if self._hidden or (self._opaque and not self._text) else self._text.decode("utf-8", "replace")
        return LineInfo(text, False, author, self.authors.get(author) if author is not None else None)

    def is_inside_key(self, editor: Editor, age_s: float) -> bool:
        """Whether a key pressed now might be taken as the rest of another one, or would end a search that somebody makes.

        An Escape stays open in emacs's way of editing; in vi's it is a key of its own after a moment.
        """
        if self._searching:
            return True
        if not self.pending or self._last not in _OPEN_KEYS:
            return False
        return not (self._last == 0x1B and editor == "vi" and age_s > 1.0)
