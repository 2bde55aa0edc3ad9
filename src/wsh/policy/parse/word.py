"""Words whose value is not fully known before a shell has run.

Such a word is a plain string in which private-use characters stand for what is not literal. Commands may not contain
private-use characters themselves (`hygiene`), so a stand-in can never be forged.
"""

from __future__ import annotations

import re

UNKNOWN = "\ue000"
"""Text that only the shell will know: a variable, the output of a command."""
GLOB = "\ue001"
"""An unquoted `*`, `?` or `[...]`."""
HOME = "\ue002"
"""The home folder of the user who runs the command."""
OPEN, COMMA, CLOSE = "\ue003", "\ue004", "\ue005"
"""Unquoted braces and the comma between them."""
SPLIT = "\ue006"
"""Where an unquoted expansion is split into words."""

_SHOWN = {UNKNOWN: "…", GLOB: "*", HOME: "~", OPEN: "{", COMMA: ",", CLOSE: "}", SPLIT: " "}
_STAND_INS = re.compile("[\ue000-\ue006]")
_UNQUOTED = {"*": GLOB, "?": GLOB, "[": GLOB, "{": OPEN, ",": COMMA, "}": CLOSE}
_MAX_WORDS = 64


def show(words: tuple[str, ...] | list[str]) -> str:
    """For people: the words with readable stand-ins, shortened."""
    # No word is shorter than one character and its blank.
    text = " ".join(_STAND_INS.sub(lambda m: _SHOWN[m[0]], word[:200]) if word else "''" for word in words[:101])
    return text if len(text) <= 200 else text[:197] + "..."


def mark_unquoted(raw: str, at_start: bool) -> str:
    """The value of unquoted text as it stands in a script: backslashes removed, specials replaced by stand-ins."""
    if raw.isalnum():
        return raw
    out: list[str] = []
    position = 0
    while position < len(raw):
        char = raw[position]
        if char == "\\":
            following = raw[position + 1 : position + 2]
            out.append("" if following == "\n" else following)
            position += 2
            continue
        if char == "~" and at_start and not out:
            end = re.compile(r"[^/]*").match(raw, position + 1)
            assert end is not None
            # `~user` is a home as well; treated like `~`.
            out.append(HOME)
            position = end.end()
            continue
        out.append(_UNQUOTED.get(char, char))
        position += 1
    return "".join(out)


def expand(word: str) -> list[str]:
    """Brace expansion, to at most 64 words, and word splitting, as far as stand-ins say."""
    found = [word]
    if OPEN in word and CLOSE in word:
        found = _expand_braces(word)[:_MAX_WORDS]
    words: list[str] = []
    for one in found:
        for char, plain in ((OPEN, "{"), (COMMA, ","), (CLOSE, "}")):
            one = one.replace(char, plain)
        words += [part for part in one.split(SPLIT) if part] if SPLIT in one else [one]
    return words


def _expand_braces(word: str) -> list[str]:
    pending: list[str] = [word]
    done: list[str] = []
    for _ in range(256):
        if not pending or len(done) + len(pending) > _MAX_WORDS:
            break
        one = pending.pop()
        close = one.find(CLOSE)
        start = one.rfind(OPEN, 0, close) if close >= 0 else -1
        if start < 0:
            done.append(one)
            continue
        body, before, after = one[start + 1 : close], one[:start], one[close + 1 :]
        if COMMA in body:
            pending += [before + choice + after for choice in reversed(body.split(COMMA))]
        elif ".." in body:
            pending.append(before + GLOB + after)
        else:
            pending.append(before + "{" + body + "}" + after)
    return done + pending


_ANSI_C = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_NAMED = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def decode_ansi_c(body: str) -> str:
    """The value of `$'body'`."""

    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
        elif code[0] in "01234567":
            number = int(code, 8) & 0xFF
        elif code[0] == "c" and len(code) > 1:
            number = ord(code[1]) & 0x1F
        else:
            return _ANSI_NAMED.get(code, code)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number <= 0xDFFF else UNKNOWN

    return _ANSI_C.sub(one, body)
