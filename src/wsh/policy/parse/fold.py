"""Take long literal texts out of a command before it is parsed, and put them back into the result.

A grammar spends time on every bracket, also inside quotes and here-documents, where they mean nothing. From the start
of a command up to the first construct that changes how shells read on, quoting is certain; long quoted texts and inert
here-documents in that stretch are replaced by one private-use character each. What is not certain stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_FIRST, _LAST = 0xE100, 0xE8FF
_PLACEHOLDER = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_LONG = 200
_MAX_STEPS = 4000

_PLAIN = re.compile(r"[^'\"\\$`#<(]+")
_VARIABLE = re.compile(r"\$[A-Za-z0-9_@*?$!-]")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r"\"((?:[^\"\\$`]|\\.)*)\"", re.DOTALL)
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\"|([A-Za-z_]\w*))([^'\"\\$`#<(\n]*)\n")
_DOUBLE_ESCAPE = re.compile(r'\\(["$`\\\n])')


@dataclass(frozen=True)
class Folded:
    text: str
    contents: dict[str, str] = field(default_factory=dict)

    def restore(self, text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self.contents.get(match[0], match[0]), text) if self.contents else text


def fold(text: str) -> Folded:
    if len(text) < _LONG:
        return Folded(text)
    out: list[str] = []
    contents: dict[str, str] = {}
    position = 0

    def put(content: str) -> str:
        char = chr(_FIRST + len(contents))
        contents[char] = content
        return char

    for _ in range(_MAX_STEPS):
        if position >= len(text) or len(contents) > _LAST - _FIRST:
            break
        char = text[position]
        match = (
            _PLAIN.match(text, position)
            or _VARIABLE.match(text, position)
            or _SINGLE.match(text, position)
            or _DOUBLE.match(text, position)
        )
        if match is not None:
            whole = match[0]
            if match.re is _SINGLE and len(whole) > _LONG:
                out.append(f"'{put(match[1])}'")
            elif match.re is _DOUBLE and len(whole) > _LONG:
                out.append(f"'{put(_unescape(match[1]))}'")
            else:
                out.append(whole)
            position = match.end()
        elif char == "\\" and position + 1 < len(text):
            out.append(text[position : position + 2])
            position += 2
        elif (
            char == "#"
            and position > 0
            and text[position - 1] not in " \t\n;|&"
            or char == "<"
            and text[position : position + 2] != "<<"
        ):
            out.append(char)
            position += 1
        elif char == "<" and (heredoc := _heredoc(text, position)) is not None:
            opening, body, closing, position = heredoc
            out.append(f"{opening}{put(body)}\n{closing}" if len(body) > _LONG else f"{opening}{body}{closing}")
        else:
            break
    out.append(text[position:])
    return Folded("".join(out), contents)


def _heredoc(text: str, position: int) -> tuple[str, str, str, int] | None:
    """Opening line, body, closing delimiter, and where reading goes on; None if the body could hold expansions."""
    opening = _HEREDOC.match(text, position)
    if opening is None:
        return None
    delimiter = opening[2] or opening[3] or opening[4]
    tabs = r"\t*" if opening[1] else ""
    end = re.compile(rf"^{tabs}{re.escape(delimiter)}$", re.MULTILINE).search(text, opening.end())
    if end is None:
        return None
    body = text[opening.end() : end.start()]
    if opening[4] and re.search(r"[$`\\]", body):
        return None
    return opening[0], body, end[0], end.end()


def _unescape(body: str) -> str:
    return _DOUBLE_ESCAPE.sub(lambda match: "" if match[1] == "\n" else match[1], body)
