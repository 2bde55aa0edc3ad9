"""A lexer that understands little and never guesses.

It knows literal words (bare, quoted, backslashed) joined by `&& || ; |`. Everything else is opaque. It is written
without looking at the grammar that `shell` uses, so that the two can check each other; where they differ, the command
is not understood. It also stays inside what bash, dash, zsh and fish read alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


class NotLiteral(Exception):
    """The text uses shell syntax beyond literal words. `what` names it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Broken(Exception):
    """The text is no command at all: unbalanced quotes, an operator without a command, nothing."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True)
class LiteralCommand:
    segments: tuple[tuple[str, ...], ...]
    operators: tuple[str, ...]


MAX_WORDS = 4096
MAX_SEGMENTS = 256
RESERVED = frozenset(
    "! [[ ]] { } if then else elif fi case esac for select while until do done in function time coproc foreach end "
    "repeat begin switch and or not".split()
)
_PLAIN = re.compile(r"[A-Za-z0-9_\-./,:=+@%^\u0080-\U0010ffff]+")
_INSIDE_DOUBLE = re.compile(r'[^"\\$`!]+')
_IN_BRACES = re.compile(r"\{[A-Za-z0-9-]{1,40}\}")
_NAMES = {
    "$": "an expansion ($)",
    "`": "a command substitution (`)",
    "*": "a glob (*)",
    "?": "a glob (?)",
    "[": "a glob ([)",
    "]": "a glob (])",
    "{": "a brace expansion ({)",
    "}": "a brace expansion (})",
    "<": "a redirection (<)",
    ">": "a redirection (>)",
    "(": "a subshell (()",
    ")": "a subshell ())",
    "\n": "a second line",
}
# `$` before one of these stays a dollar sign inside double quotes.
_HARMLESS_AFTER_DOLLAR = frozenset('" |)/')


def lex(text: str) -> LiteralCommand:
    """The segments of `text`; raises NotLiteral or Broken."""
    segments: list[tuple[str, ...]] = []
    operators: list[str] = []
    words: list[str] = []
    current: list[str] | None = None
    bare = True  # the current word has no quotes so far
    first_bare = True
    position, size = 0, len(text)

    def end_word() -> None:
        nonlocal current, bare, first_bare
        if current is not None:
            if not words:
                first_bare = bare
            words.append("".join(current))
            if len(words) > MAX_WORDS:
                raise Broken(f"it has more than {MAX_WORDS} words")
        current, bare = None, True

    def end_segment(operator: str) -> None:
        end_word()
        if not words:
            raise Broken(f"there is no command before {operator!r}" if operator else "there is no command")
        _check_first(words[0], first_bare)
        segments.append(tuple(words))
        if len(segments) > MAX_SEGMENTS:
            raise Broken(f"it has more than {MAX_SEGMENTS} commands")
        words.clear()

    while position < size:
        char = text[position]
        plain = _PLAIN.match(text, position)
        if plain:
            if current is None and char == "=":
                raise NotLiteral("a word that begins with =")
            current = [] if current is None else current
            current.append(plain[0])
            position = plain.end()
        elif char in " \t":
            end_word()
            position += 1
        elif char == "'":
            end = text.find("'", position + 1)
            if end < 0:
                raise Broken("a single quote is not closed")
            content = text[position + 1 : end]
            if content.endswith("\\"):
                raise NotLiteral("a backslash before a closing single quote, which shells read differently")
            current = [] if current is None else current
            current.append(content)
            bare, position = False, end + 1
        elif char == '"':
            content, position = _double_quoted(text, position + 1)
            current = [] if current is None else current
            current.append(content)
            bare = False
        elif char == "\\":
            if position + 1 >= size:
                raise Broken("it ends in a backslash")
            escaped = text[position + 1]
            if not (escaped.isascii() and escaped.isprintable()):
                raise NotLiteral("a backslash before a character that is not printable ASCII")
            current = [] if current is None else current
            current.append(escaped)
            bare, position = False, position + 2
        elif (
            char in "~#"
            and current is not None
            and text[position - 1].isalnum()
            or char == "~"
            and current is not None
            and text[position - 1] in "^~"
        ):
            current.append(char)
            position += 1
        elif char == "{" and current is not None and text[position - 1] == "@" and _IN_BRACES.match(text, position):
            # git's stash@{0} and @{u}: every shell leaves braces alone that hold neither a comma nor a range.
            reference = _IN_BRACES.match(text, position)
            assert reference is not None
            current.append(reference[0])
            position = reference.end()
        elif char == "!" and current is None and words and text[position + 1 : position + 2] in ("", " ", "\t"):
            current = ["!"]
            position += 1
        elif char in "&|;":
            operator = text[position : position + 2]
            following = text[position + 2 : position + 3]
            if operator in ("&&", "||") and following not in tuple("&|;"):
                position += 2
            elif char in "|;" and operator[1:] not in tuple("&|;"):
                operator, position = char, position + 1
            else:
                raise NotLiteral(f"the operator {operator.strip()!r}")
            end_segment(operator)
            operators.append(operator)
        elif char == "\n" and not text[position:].strip(" \t\n"):
            break
        elif char == "#":
            raise NotLiteral("a comment (#)")
        elif char == "~":
            raise NotLiteral("a tilde expansion (~)")
        elif char == "!":
            raise NotLiteral("a negation or history expansion (!)")
        else:
            raise NotLiteral(_NAMES.get(char, f"the character {char!r}"))
    end_word()
    if words or not operators or operators[-1] != ";":
        end_segment("")
    return LiteralCommand(tuple(segments), tuple(operators))


def _double_quoted(text: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    while True:
        run = _INSIDE_DOUBLE.match(text, position)
        if run:
            parts.append(run[0])
            position = run.end()
        if position >= len(text):
            raise Broken("a double quote is not closed")
        char, following = text[position], text[position + 1 : position + 2]
        if char == '"':
            return "".join(parts), position + 1
        if char == "\\":
            if following == "\n":
                raise NotLiteral("a continued line")
            parts.append(following if following and following in '$`"\\' else "\\" + following)
            position += 2
        elif char == "$" and following and following in _HARMLESS_AFTER_DOLLAR:
            parts.append("$")
            position += 1
        elif char == "!" and following and following in ' "=':
            parts.append("!")
            position += 1
        else:
            raise NotLiteral(_NAMES.get(char, "a history expansion (!)") + " inside double quotes")


def _check_first(word: str, bare: bool) -> None:
    if "=" in word:
        raise NotLiteral("an assignment before the command")
    if bare and word in RESERVED:
        raise NotLiteral(f"the shell keyword {word!r}")
