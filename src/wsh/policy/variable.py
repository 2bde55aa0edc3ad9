"""Commands as they may be written down: the names of variables that they set, and never the values.

Looks at words as a person does, of text that need not be a command at all. What is no value may be left out as well; the rest
stays, since a trail that does not say what ran is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

_HIDDEN = "[...]"
_SETS = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?(?==)")
_PIECE = re.compile(
    r"""(?P<end>[;&|()\n]+)|\s+|(?P<word>(?:'[^']*(?:'|\Z)|\$'(?:[^'\\]|\\.)*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)"""
    r"""|\$\((?:[^()]|\([^()]*\))*(?:\)|\Z)|`[^`]*(?:`|\Z)|\\.|[^\s;&|()`'"\\])+)|.""",
    re.DOTALL,
)
_SUBSTITUTION = re.compile(r"(\$\(|`)((?:[^()`]|\([^()]*\))*)")
_QUOTED = re.compile(r"(\$?')(.*)(')|(\")(.*)(\")", re.DOTALL)
_SPELT = re.compile(r"\\(.)", re.DOTALL)

_BEFORE_COMMANDS = frozenset("{ ! if then elif else while until do time".split())
_DECLARE = frozenset("export declare typeset readonly local".split())
_RUN_WITH = frozenset("env sudo doas".split())
_TAKE_VALUE = frozenset(
    "-u -g -h -p -C -D -R -r -t -T -U --unset --chdir --user --group --host --prompt --chroot".split()
)
_SHELLS = frozenset("sh bash zsh dash ksh fish ash su".split())
_CONTAINERS = frozenset("docker podman nerdctl".split())
_GIVES = re.compile(r"--(?:set)?env=|--split-string=|-S(?=.)")


def hide_values(text: str) -> str:
    """A line as it was typed."""
    if "=" not in text:
        return text
    reader = _Reader()
    return "".join(
        reader.take(match["word"]) if match["word"] else reader.end(match[0]) if match["end"] else match[0]
        for match in _PIECE.finditer(text)
    )


def hide_argv_values(argv: Sequence[str]) -> list[str]:
    """Words as a program gets them, also spelt out (`approval.escape`). One word alone may be a line."""
    if len(argv) == 1:
        return [_inside_quotes(argv[0], hide_values)]
    reader = _Reader()
    return [reader.take(word) for word in argv]


def _inside_quotes(word: str, change: Callable[[str], str]) -> str:
    match = _QUOTED.fullmatch(word)
    if match is None:
        return change(word)
    opening, text, closing = (part for part in match.groups() if part is not None)
    if opening == "$'":
        plain = _SPELT.sub(lambda found: {"n": "\n", "'": "'"}.get(found[1], found[0]), text)
        return opening + change(plain).replace("\n", r"\n").replace("'", r"\'") + closing
    return opening + change(text) + closing


def _bare(word: str) -> str:
    match = _QUOTED.fullmatch(word)
    return word if match is None else match[2] if match[2] is not None else match[5]


class _Reader:
    """Goes through the words of a command."""

    def __init__(self) -> None:
        self.end("")

    def end(self, separator: str) -> str:
        """Behind `separator` begins another command."""
        self._may_set = True
        self._declares = False
        self._runs_with = False
        self._program = ""
        self._next: Literal["", "kept", "script", "set"] = ""
        return separator

    def take(self, word: str) -> str:
        bare, follows = _bare(word), self._next
        self._next = ""
        if follows == "kept":
            return word
        if follows == "script":
            return _inside_quotes(word, hide_values)
        sets = _SETS.match(bare)
        if sets is not None and (self._may_set or follows == "set"):
            return f"{sets[0]}={_HIDDEN}"
        if bare.startswith("-") and (given := _GIVES.match(bare)) is not None:
            return given[0] + hide_values(bare[given.end() :])
        return self._note(word, bare)

    def _note(self, word: str, bare: str) -> str:
        name = bare.rpartition("/")[2]
        if bare.startswith("-"):
            self._next = self._find_next(bare)
        elif name in _RUN_WITH or name in _DECLARE:
            self._may_set, self._runs_with, self._declares = True, name in _RUN_WITH, name in _DECLARE
        elif not (self._declares or (self._may_set and name in _BEFORE_COMMANDS)):
            self._may_set = self._runs_with = False
        if name in _SHELLS | _CONTAINERS | _RUN_WITH:
            self._program = name
        return _SUBSTITUTION.sub(lambda match: match[1] + hide_values(match[2]), word)

    def _find_next(self, option: str) -> Literal["", "kept", "script", "set"]:
        if option in ("--env", "--setenv") or (option == "-e" and self._program in _CONTAINERS):
            return "set"
        if self._runs_with:
            script = self._program == "env" and option in ("-S", "--split-string")
            return "script" if script else "kept" if option in _TAKE_VALUE else ""
        return "script" if self._program in _SHELLS and re.fullmatch(r"-[A-Za-z]*c", option) else ""
