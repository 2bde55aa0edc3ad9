"""Finding the marks of our own shell integration in a stream of bytes.

A mark is an OSC 133 that carries the session's nonce and a number that rises: `A` a prompt begins, `C` a command begins,
`D` it ended, `L` tells the line that is being typed. `B` (the prompt is complete) and `P` (the rest of a command is asked for)
have no nonce and are believed only after an `A`, before the next `C` or `D`; a second `B` there is `R`, the prompt drawn
again. Anything that a program prints by itself lacks the nonce, and a replay of an old mark lacks a new number: both are passed over. The scanner
works on pieces of any size and speaks of absolute offsets. It knows nothing of sessions, terminals or clocks.
"""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import unquote_to_bytes

from wsh.session.shell.injection import ShellName
from wsh.wire.json.object import JsonObject

MarkKind: TypeAlias = Literal["A", "B", "C", "D", "L", "P", "R"]

_INTRO = b"\x1b]133;"
_BELL = b"\x07"
_PROMPT_END = b"\x1b]133;B;wsh\x07"
_CONTINUED = b"\x1b]133;P;k=s;wsh\x07"
_INTRODUCTION = re.compile(rb"\x1b\]133;I;wsh=(\d{1,20}\.\d{1,20});shell=(bash|zsh|fish)\x07")
_SHELLS: dict[bytes, ShellName] = {b"bash": "bash", b"zsh": "zsh", b"fish": "fish"}
LONGEST_INTRODUCTION = 96
_NONCE_ENDS = frozenset(bytes([c]) for c in b"0123456789.")
_TELLING = 12
_LONG_BYTES = 2048
_memmem = ctypes.PyDLL(None).memmem
_memmem.restype = ctypes.c_void_p
_memmem.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
LONGEST_MARK = 1024 * 1024
"""A mark carries a whole command line; a longer one is not believed."""


@dataclass(frozen=True, slots=True)
class Mark:
    kind: MarkKind
    start: int
    """Offset of its first byte: what the program printed ends here."""
    end: int
    """Offset behind its last byte: what the program prints begins here."""
    number: int = 0
    status: int | None = None
    fields: dict[str, str] = field(default_factory=dict)


def find_introduction(data: bytes) -> tuple[str, ShellName, int] | None:
    """A shell that was given our marks by hand (`wsh shell-integration`) says its nonce and name; and where that ends."""
    met = list(_INTRODUCTION.finditer(data))
    return (met[-1][1].decode(), _SHELLS[met[-1][2]], met[-1].end()) if met else None


def _has(data: bytes, text: bytes) -> bool:
    """Whether `text` is in `data`. In long data the search of the C library is ten times as fast, above all among digits."""
    if len(data) < _LONG_BYTES:
        return text in data
    return _memmem(data, len(data), text, len(text)) is not None


class NonceMask:
    """Puts zeros in place of the nonce, as many as it has characters, so that offsets hold. Feed it a stream in order.

    Of a nonce that is cut between two pieces the first part is masked where it stands in a mark, or is long enough to be told.
    """

    def __init__(self, nonce: str) -> None:
        self._nonce = nonce.encode("ascii")
        self._zeros = b"0" * len(self._nonce)
        self._open = 0
        """How many of the newest bytes are the beginning of a nonce."""
        self._sure = False
        """That beginning stands in a mark."""

    def hide(self, data: bytes) -> bytes:
        nonce, shown = self._nonce, data
        if self._open:
            rest = nonce[self._open :][: len(data)]
            if data.startswith(rest):
                self._open += len(rest)
                if self._sure or self._open >= _TELLING:
                    shown = b"0" * len(rest) + data[len(rest) :]
                if self._open < len(nonce):
                    return shown
            self._open = 0
        if _has(data, nonce):
            shown = shown.replace(nonce, self._zeros)
        if shown[-1:] in _NONCE_ENDS:
            most = min(len(nonce) - 1, len(shown))
            size = next((size for size in range(most, 0, -1) if shown.endswith(nonce[:size])), 0)
            self._open, self._sure = size, shown[: len(shown) - size].endswith(b"wsh=")
            if size >= _TELLING or (size and self._sure):
                shown = shown[: len(shown) - size] + b"0" * size
        return shown


class MarkScanner:
    """Feed it every byte once, in order. `state` and `restore` carry it over a restart."""

    def __init__(self, nonce: str) -> None:
        self._needle = f";wsh={nonce};n=".encode("ascii")
        self._number = -1
        self._prompting = False
        self._reading = False
        self._carry = b""

    @property
    def open_bytes(self) -> int:
        """How many of the newest bytes may be the beginning of a mark."""
        return len(self._carry)

    def state(self) -> JsonObject:
        return {
            "number": self._number,
            "prompting": self._prompting,
            "reading": self._reading,
            "carry": self._carry.decode("latin-1"),
        }

    def restore(self, state: JsonObject) -> None:
        self._number = int(state.get("number", -1))
        self._prompting = bool(state.get("prompting"))
        self._reading = bool(state.get("reading"))
        self._carry = str(state.get("carry", "")).encode("latin-1", "replace")

    def scan(self, offset: int, data: bytes) -> list[Mark]:
        """The marks that end in `data`, whose first byte has this offset."""
        if self._carry:
            offset -= len(self._carry)
            data = self._carry + data
            self._carry = b""
        if b"\x1b" not in data:
            return []  # every mark begins with one; this look is much quicker than those for whole marks
        marks: list[Mark] = []
        at = 0
        while True:
            found = data.find(self._needle, at)
            plain = self._find_plain(data, at, found if found >= 0 else len(data))
            if plain is not None:
                kind, start, at = plain
                marks.append(Mark(kind, offset + start, offset + at))
                continue
            if found < 0:
                break
            mark, at = self._read(data, found, offset)
            if mark is not None:
                marks.append(mark)
            elif at < 0:
                break
        self._keep(data, max(at, marks[-1].end - offset if marks else 0))
        return marks

    def _find_plain(self, data: bytes, at: int, end: int) -> tuple[MarkKind, int, int] | None:
        """The next mark without a nonce that may be believed now."""
        if self._prompting and (start := data.find(_PROMPT_END, at, end)) >= 0:
            self._prompting, self._reading = False, True
            return "B", start, start + len(_PROMPT_END)
        if not self._reading:
            return None
        again, more = data.find(_PROMPT_END, at, end), data.find(_CONTINUED, at, end)
        if again >= 0 and not 0 <= more < again:
            return "R", again, again + len(_PROMPT_END)
        return ("P", more, more + len(_CONTINUED)) if more >= 0 else None

    def _keep(self, data: bytes, at: int) -> None:
        begin = data.rfind(b"\x1b", max(at, len(data) - LONGEST_MARK))
        if begin < 0:
            return
        tail = data[begin : begin + len(_INTRO)]
        if _INTRO.startswith(tail) and _BELL not in data[begin:]:
            self._carry = data[begin:]

    def _read(self, data: bytes, found: int, offset: int) -> tuple[Mark | None, int]:
        """The mark around the nonce at `found`, and where to go on; -1 if the rest of it has not come yet."""
        after = found + len(self._needle)
        begin = data.rfind(_INTRO, max(0, found - 24), found)
        if begin < 0:
            return None, after
        end = data.find(_BELL, after)
        if end < 0:
            return (None, -1) if len(data) - begin <= LONGEST_MARK else (None, after)
        kind, _, status = data[begin + len(_INTRO) : found].decode("latin-1").partition(";")
        number, _, rest = data[after:end].partition(b";")
        if kind not in ("A", "C", "D", "L") or b"\x1b" in rest or not number.isdigit() or len(number) > 18:
            return None, after
        if int(number) <= self._number:
            return None, end + 1
        self._number = int(number)
        if kind != "L":
            self._prompting, self._reading = kind == "A", False
        mark = Mark(
            kind,  # type: ignore[arg-type]  # one of four, see above
            offset + begin,
            offset + end + 1,
            int(number),
            int(status) if status.isdigit() else None,
            read_fields(rest),
        )
        return mark, end + 1


def read_fields(data: bytes) -> dict[str, str]:
    """`key=value` separated by semicolons; values in shell quotes may contain anything."""
    fields: dict[str, str] = {}
    at = 0
    while at < len(data):
        equals = data.find(b"=", at)
        if equals < 0:
            break
        key = data[at:equals].decode("latin-1")
        at = equals + 1
        if data[at : at + 1] in (b"'", b"$", b'"'):
            value, at = _unquote(data, at)
        else:
            end = data.find(b";", at)
            end = len(data) if end < 0 else end
            value, at = unquote_to_bytes(data[at:end]), end
        fields[key] = value.decode("utf-8", "replace")
        at += 1
    return fields


_SIMPLE = {
    ord("a"): 7, ord("b"): 8, ord("e"): 27, ord("E"): 27, ord("f"): 12, ord("n"): 10, ord("r"): 13, ord("t"): 9,
    ord("v"): 11,
}  # fmt: skip


def _unquote(data: bytes, at: int) -> tuple[bytes, int]:
    """A word that a shell quoted for reuse, and the place behind it."""
    out = bytearray()
    while at < len(data) and data[at] != 0x3B:
        char = data[at]
        if char == 0x27:  # '…'
            end = data.find(b"'", at + 1)
            end = len(data) if end < 0 else end
            out += data[at + 1 : end]
            at = end + 1
        elif char == 0x24 and data[at + 1 : at + 2] == b"'":  # $'…'
            at = _unescape(data, at + 2, out)
        elif char == 0x5C:
            out += data[at + 1 : at + 2]
            at += 2
        else:
            out.append(char)
            at += 1
    return bytes(out), at


def _unescape(data: bytes, at: int, out: bytearray) -> int:
    """The inside of $'…' up to the closing quote; returns the place behind it."""
    while at < len(data) and data[at] != 0x27:
        if data[at] != 0x5C:
            out.append(data[at])
            at += 1
            continue
        char = data[at + 1] if at + 1 < len(data) else 0x5C
        at += 2
        if char in _SIMPLE:
            out.append(_SIMPLE[char])
        elif char in b"01234567":
            digits = 1
            while digits < 3 and data[at + digits - 1 : at + digits] in _OCTAL:
                digits += 1
            out.append(int(data[at - 1 : at - 1 + digits], 8) & 0xFF)
            at += digits - 1
        elif char in b"xuU":
            most = {0x78: 2, 0x75: 4, 0x55: 8}[char]
            digits = 0
            while digits < most and data[at + digits : at + digits + 1] in _HEX:
                digits += 1
            code = int(data[at : at + digits] or b"0", 16)
            out += bytes([code]) if char == 0x78 else chr(min(code, 0x10FFFF)).encode("utf-8", "replace")
            at += digits
        elif char in b"cC" and at < len(data):  # \cX of bash, \C-X of zsh
            at += 1 if char == 0x43 and data[at : at + 1] == b"-" else 0
            out.append(data[at] & 0x1F if data[at : at + 1] != b"?" else 0x7F)
            at += 1
        elif char == 0x4D and data[at : at + 1] == b"-":  # \M-X of zsh: the eighth bit
            inner = bytearray()
            if data[at + 1 : at + 2] == b"\\":
                stop = data.find(b"'", at + 1)
                at = min(_unescape_one(data, at + 1, inner), stop if stop >= 0 else len(data))
            else:
                inner += data[at + 1 : at + 2]
                at += 2
            out += bytes(byte | 0x80 for byte in inner)
        else:
            out.append(char)
    return at + 1


def _unescape_one(data: bytes, at: int, out: bytearray) -> int:
    """One escape at `at`, such as the `\\C-a` in `\\M-\\C-a`."""
    end = at + (4 if data[at + 1 : at + 3] in (b"C-",) else 2)
    _unescape(data[at:end] + b"'", 0, out)
    return end


_OCTAL = tuple(bytes([c]) for c in b"01234567")
_HEX = tuple(bytes([c]) for c in b"0123456789abcdefABCDEF")
