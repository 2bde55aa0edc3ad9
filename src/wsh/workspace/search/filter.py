"""Narrowing a search to some files and chunks: globs, languages, kinds, names, times.

One `Filter` serves words, literals and patterns, in this process and in the one that runs patterns: it writes itself
as a condition in SQL over `file f` and `chunk c`. Globs and names are matched in a time that grows with the path alone
(by RE2), since nothing could stop them and all of this process would wait.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from wsh.workspace.error import InvalidArguments


@dataclass(frozen=True)
class Filter:
    sources: tuple[str, ...] = ("code", "prose")
    paths: tuple[str, ...] = ()
    langs: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    name: str | None = None
    modified_after_ns: int | None = None
    closed: tuple[str, ...] = ()
    """Paths relative to the workspace that the caller may not read, nor what is below them."""

    @property
    def narrows_chunks(self) -> bool:
        return bool(self.kinds) or self.name is not None

    def file_condition(self) -> tuple[str, list[object]]:
        """A condition on `file f`; `install` must have been called on the connection for paths."""
        parts: list[str] = []
        values: list[object] = []
        if len(self.sources) == 1:
            parts.append("f.source = ?")
            values.append(self.sources[0])
        if self.langs:
            parts.append(f"f.lang IN ({','.join('?' * len(self.langs))})")
            values += self.langs
        if self.modified_after_ns is not None:
            parts.append("f.mtime_ns > ?")
            values.append(self.modified_after_ns)
        for path in self.closed:
            parts.append("f.path <> ? AND substr(f.path, 1, ?) <> ?")
            values += [path, len(path) + 1, f"{path}/"]
        if self.paths:
            parts.append("path_fits(f.path)")
        return " AND ".join(parts), values

    def chunk_condition(self) -> tuple[str, list[object]]:
        parts: list[str] = []
        values: list[object] = []
        if self.kinds:
            parts.append(f"c.kind IN ({','.join('?' * len(self.kinds))})")
            values += self.kinds
        if self.name is not None:
            parts.append("name_fits(c.name)")
        return " AND ".join(parts), values

    def condition(self) -> tuple[str, list[object]]:
        found = [self.file_condition(), self.chunk_condition()]
        return " AND ".join(sql for sql, _ in found if sql), [v for _, values in found for v in values]

    def install(self, connection: sqlite3.Connection) -> None:
        if self.paths:
            fits = compile_globs(self.paths)
            connection.create_function("path_fits", 1, lambda path: fits(path), deterministic=True)
        if self.name is not None:
            name_fits = compile_name(self.name)
            connection.create_function("name_fits", 1, lambda name: name_fits(name), deterministic=True)

    def chunk_fits(self, kind: str, name: str) -> bool:
        return (not self.kinds or kind in self.kinds) and (self.name is None or compile_name(self.name)(name))


@lru_cache(maxsize=64)
def compile_globs(globs: tuple[str, ...]) -> _Globs:
    return _Globs(globs)


class _Globs:
    """Whether a path fits: any of the globs, and none of those that start with `!`."""

    def __init__(self, globs: tuple[str, ...]) -> None:
        self._fits: list[Any] = []
        self._not: list[Any] = []
        for glob in globs:
            target, body = (self._not, glob[1:]) if glob.startswith("!") else (self._fits, glob)
            if not body.strip("/"):
                raise InvalidArguments(f"{glob!r} is not a glob.", hint="Write globs such as src/** or *.py.")
            target.append(_glob_to_regex(body))

    def __call__(self, path: str) -> bool:
        if any(pattern.fullmatch(path) for pattern in self._not):
            return False
        return not self._fits or any(pattern.fullmatch(path) for pattern in self._fits)


def _compile(said: str, *, case_sensitive: bool = True) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    options.case_sensitive = case_sensitive
    return re2.compile(said, options)


def _glob_to_regex(glob: str) -> Any:
    """`*` stays within a folder, `**` does not; without a slash the glob fits at any depth; a folder fits whole."""
    body = glob.removeprefix("./").strip("/")
    out = [] if "/" in glob.removeprefix("./").rstrip("/") else ["(?:.*/)?"]
    at = 0
    while at < len(body):
        char = body[at]
        if body.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
        elif body.startswith("**", at):
            out.append(".*")
            at += 2
        elif char == "*":
            out.append("[^/]*")
            at += 1
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[" and (end := body.find("]", at + 2)) > 0:
            inside = body[at + 1 : end].replace("\\", r"\\")
            out.append("[" + ("^" + inside[1:] if inside[0] in "!^" else inside) + "]")
            at = end + 1
        elif char == "{" and (end := body.find("}", at)) > 0:
            choices = (re2.escape(c).replace(r"\*", "[^/]*") for c in body[at + 1 : end].split(","))
            out.append("(?:" + "|".join(choices) + ")")
            at = end + 1
        else:
            out.append(re2.escape(char))
            at += 1
    try:
        return _compile("".join(out) + "(?:/.*)?")
    except re2.error:
        raise InvalidArguments(f"{glob!r} is not a glob.", hint="Write globs such as src/** or *.py.") from None


@lru_cache(maxsize=64)
def compile_name(name: str) -> _Name:
    return _Name(name)


class _Name:
    """Whether a symbol is called so: whole or its last part, without regard to case; `*` and `?` stand for any."""

    def __init__(self, name: str) -> None:
        body = re2.escape(name).replace(r"\*", ".*").replace(r"\?", ".")
        self._pattern = _compile(rf"(?:.*[.:#\\])?{body}", case_sensitive=False)

    def __call__(self, name: str) -> bool:
        return bool(name) and self._pattern.fullmatch(name) is not None
