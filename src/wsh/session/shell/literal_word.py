"""Literal words: is a command line one that needs no shell to be understood?"""

from __future__ import annotations

_META = frozenset("|&;<>()$`*?[]{}#~!\n\r")


def split_literal(command: str) -> list[str] | None:
    """The words of `command` if a shell would read it as nothing but words, else None.

    Quotes and backslashes are understood; any other character that a shell could treat specially makes it None, and so
    does an assignment in front.
    """
    words: list[str] = []
    word: list[str] | None = None
    i, n = 0, len(command)
    while i < n:
        c = command[i]
        if c in " \t":
            if word is not None:
                words.append("".join(word))
                word = None
            i += 1
            continue
        word = [] if word is None else word
        if c == "'":
            end = command.find("'", i + 1)
            if end < 0:
                return None
            word.append(command[i + 1 : end])
            i = end + 1
        elif c == '"':
            i += 1
            while i < n and command[i] != '"':
                if command[i] in "$`!":
                    return None
                if command[i] == "\\" and i + 1 < n and command[i + 1] in '"\\$`':
                    i += 1
                word.append(command[i])
                i += 1
            if i >= n:
                return None
            i += 1
        elif c == "\\":
            if i + 1 >= n or command[i + 1] == "\n":
                return None
            word.append(command[i + 1])
            i += 2
        elif c in _META or (c == "=" and not words):
            return None
        else:
            word.append(c)
            i += 1
    if word is not None:
        words.append("".join(word))
    return words if words and words[0] else None
